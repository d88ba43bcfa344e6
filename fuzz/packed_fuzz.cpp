// Packed data sets: as they come, and with checksums made right so that the fuzzer gets behind them.

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/little_endian.h"
#include "data/format/packed.h"

namespace {

using namespace motley;

constexpr std::size_t kHeaderBytes = 128;

void open(std::span<const std::byte> bytes) {
  Result<data::Parts> parts = data::parse_packed(SharedBytes::copy_of(bytes), "file");
  if (!parts) return;
  const auto set = data::make_dataset(std::move(*parts), {});
  std::size_t elements = 1;
  for (const std::int64_t extent : set->sample_shape()) elements *= static_cast<std::size_t>(extent);
  std::vector<float> x(elements);
  const std::uint64_t last = set->size() - 1;
  set->gather(std::span(&last, 1), x);
}

std::uint32_t crc(std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

// The sections are cut from the end, where the targets are, as far as the header's own words allow.
void mend(std::span<std::byte> bytes) {
  const std::uint64_t count = load_le<std::uint64_t>(&bytes[24]);
  const std::uint64_t each = bytes[13] == std::byte{0} ? 8 : std::uint64_t{4} * load_le<std::uint32_t>(&bytes[16]);
  std::uint64_t sample_bytes = count;
  for (std::size_t i = 0; i < std::to_integer<std::size_t>(bytes[14]) && i < 8; ++i) {
    sample_bytes *= load_le<std::uint64_t>(&bytes[40 + 8 * i]);
  }
  if (bytes[12] == std::byte{1}) sample_bytes *= 4;
  const std::span<std::byte> rest = bytes.subspan(kHeaderBytes);
  if (sample_bytes <= rest.size()) store_le(&bytes[104], crc(rest.first(sample_bytes)));
  if (count * each <= rest.size()) store_le(&bytes[108], crc(rest.last(count * each)));
  store_le(&bytes[124], crc(bytes.first(124)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  open(bytes);
  if (size < kHeaderBytes) return 0;
  std::vector<std::byte> mended(bytes.begin(), bytes.end());
  mend(mended);
  open(mended);
  return 0;
}
