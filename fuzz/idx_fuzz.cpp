// IDX files, plain and gzip.

#include <cstddef>
#include <cstdint>
#include <span>

#include "data/format/assemble.h"
#include "data/format/gzip.h"
#include "data/format/idx.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace motley;
  SharedBytes bytes = SharedBytes::copy_of(std::as_bytes(std::span(data, size)));
  if (data::looks_like_gzip(bytes.bytes())) {
    Result<SharedBytes> unpacked = data::gunzip(bytes.bytes(), "file");
    if (!unpacked) return 0;
    bytes = *unpacked;
  }
  const Result<data::Array> array = data::parse_idx(bytes.bytes(), "file");
  if (!array) return 0;
  const data::NamedArray named{"file", bytes, *array};
  if (Result<data::Parts> parts = data::assemble(named, named)) data::make_dataset(std::move(*parts), {});
  return 0;
}
