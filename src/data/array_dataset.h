#pragma once
// The one implementation of Dataset: samples as bytes (u8 or little-endian float32), targets decoded. Immutable; any
// thread may gather.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/format/array.h"
#include "motley/bytes.h"

namespace motley::data {

constexpr std::int64_t kClassesMax = std::int64_t{1} << 20;

struct Parts {
  std::uint64_t size = 0;
  DType sample_dtype = DType::u8;  // u8 or f32
  std::vector<std::int64_t> sample_shape;
  SharedBytes samples;
  TargetKind target_kind = TargetKind::classes;
  std::uint64_t target_elements = 1;
  std::vector<std::int64_t> classes;  // target_kind classes: size of them, each in [0, kClassesMax)
  std::vector<float> values;          // target_kind values: size * target_elements of them
};

/// REQUIRES parts that fit each other; readers check before.
std::shared_ptr<const Dataset> make_dataset(Parts parts, const Normalisation& normalisation);

/// The complaint about a class number out of range, or empty.
std::string complain_about_classes(const std::vector<std::int64_t>& classes);

}  // namespace motley::data
