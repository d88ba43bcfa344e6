#pragma once
// Made-up samples for softmax regression: blobs around one random centre a class, equal on every machine. Immutable;
// any thread.

#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace motley::softmax {

struct BlobSizes {
  std::uint64_t samples = 0, features = 0, classes = 0;
};

/// They have the same centres and other samples.
enum class Part : std::uint8_t { train, test };

class Blobs final : public data::Dataset {
 public:
  /// REQUIRES sizes above zero, and memory for so many.
  Blobs(const BlobSizes& sizes, Part part);

  [[nodiscard]] std::uint64_t size() const override { return sizes_.samples; }
  [[nodiscard]] const std::string& fingerprint() const override { return fingerprint_; }
  [[nodiscard]] std::uint64_t features() const noexcept { return sizes_.features; }
  [[nodiscard]] std::uint64_t classes() const noexcept { return sizes_.classes; }
  // REQUIRES number < size().
  [[nodiscard]] std::span<const float> sample(std::uint64_t number) const;
  [[nodiscard]] std::uint64_t label(std::uint64_t number) const;

 private:
  BlobSizes sizes_;
  std::vector<float> samples_;  // one after the other
  std::vector<std::uint64_t> labels_;
  std::string fingerprint_;
};

}  // namespace motley::softmax
