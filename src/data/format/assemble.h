#pragma once
// Arrays of samples and targets: read from a source, put together. Functions without state; any thread.

#include <string>

#include "data/array_dataset.h"
#include "data/format/array.h"
#include "data/source/source.h"

namespace motley::data {

/// An array with the file it came from and what keeps its bytes alive.
struct NamedArray {
  std::string name;
  SharedBytes owner;
  Array array;
};

/// An IDX or npy array, plain or packed with gzip: the bytes say which. Errors: input, and those of the source.
Result<NamedArray> read_array(const Source& source);

/// u8 and float32 samples are used in place, other types become float32; u8 images [N, H, W] become [N, 1, H, W].
/// Integer targets of shape [N] or [N, 1] are classes, floating-point ones of any shape [N, ...] values.
Result<Parts> assemble(const NamedArray& samples, const NamedArray& targets);

}  // namespace motley::data
