// Frame headers: whatever is accepted keeps its promises and is written back as the same bytes.

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/little_endian.h"
#include "wire/frame.h"
#include "wire/limits.h"

namespace {

using HeaderBytes = std::array<std::byte, motley::wire::kHeaderBytes>;

void check(const HeaderBytes& bytes, std::span<const std::byte> body) {
  using namespace motley::wire;
  const auto header = decode_header(bytes, kControlBytesMax);
  if (!header.ok()) {
    MOTLEY_ASSERT(!header.error().message.empty() && !header.error().hint.empty());
    return;
  }
  MOTLEY_ASSERT(header->length <= body_bytes_max(header->type));
  MOTLEY_ASSERT(!is_segmented(header->type) || header->length <= header->total);
  MOTLEY_ASSERT(encode_header(*header) == bytes);
  const bool good = verify_body(*header, body).ok();
  MOTLEY_ASSERT(!good || body.size() == header->length);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  HeaderBytes bytes{};
  const auto input = std::as_bytes(std::span(data, size));
  const std::size_t taken = std::min(size, bytes.size());
  std::copy_n(input.begin(), taken, bytes.begin());
  check(bytes, input.subspan(taken));
  // Hardly any input has the right checksum, so look behind that check, too.
  constexpr std::size_t kAtHeaderCrc = motley::wire::kHeaderBytes - 4;
  motley::store_le<std::uint32_t>(bytes.data() + kAtHeaderCrc, motley::crc32c(std::span(bytes).first(kAtHeaderCrc)));
  check(bytes, input.subspan(taken));
  return 0;
}
