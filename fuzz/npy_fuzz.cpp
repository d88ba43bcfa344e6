// npy files, as samples and as targets.

#include <cstddef>
#include <cstdint>
#include <span>

#include "data/format/assemble.h"
#include "data/format/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace motley;
  const SharedBytes bytes = SharedBytes::copy_of(std::as_bytes(std::span(data, size)));
  const Result<data::Array> array = data::parse_npy(bytes.bytes(), "file");
  if (!array) return 0;
  const data::NamedArray named{"file", bytes, *array};
  if (Result<data::Parts> parts = data::assemble(named, named)) data::make_dataset(std::move(*parts), {});
  return 0;
}
