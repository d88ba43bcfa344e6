#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "base/crc32c.h"
#include "base/little_endian.h"
#include "base/philox.h"

namespace motley {
namespace {

RC_GTEST_PROP(Crc32c, PiecesGiveTheWhole, (std::vector<std::uint8_t> data, std::uint16_t cut)) {
  const auto bytes = std::as_bytes(std::span(data));
  const std::size_t at = data.empty() ? 0 : cut % (data.size() + 1);
  RC_ASSERT(crc32c(bytes.subspan(at), crc32c(bytes.first(at))) == crc32c(bytes));
}

// Linear: the checksum of an exclusive or of equal lengths follows from the checksums. Holds for any CRC and for little
// else.
RC_GTEST_PROP(Crc32c, IsLinear, (std::vector<std::uint8_t> a)) {
  const auto b = *rc::gen::container<std::vector<std::uint8_t>>(a.size(), rc::gen::arbitrary<std::uint8_t>());
  std::vector<std::uint8_t> both(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) both[i] = a[i] ^ b[i];
  const std::vector<std::uint8_t> zeros(a.size());
  const auto crc = [](const std::vector<std::uint8_t>& data) { return crc32c(std::as_bytes(std::span(data))); };
  RC_ASSERT((crc(a) ^ crc(b) ^ crc(zeros)) == crc(both));
}

RC_GTEST_PROP(LittleEndian, ComesBack, (std::uint64_t value)) {
  std::byte bytes[8];
  store_le(bytes, value);
  RC_ASSERT(load_le<std::uint64_t>(bytes) == value);
  RC_ASSERT(load_le<std::uint32_t>(bytes) == static_cast<std::uint32_t>(value));
  RC_ASSERT(load_le<std::uint32_t>(bytes + 4) == static_cast<std::uint32_t>(value >> 32));
}

RC_GTEST_PROP(Philox, SameSeedSameStream, (std::uint64_t seed, std::uint64_t stream)) {
  Philox a(seed, stream);
  Philox b(seed, stream);
  for (int i = 0; i < 9; ++i) RC_ASSERT(a.next_u64() == b.next_u64());
}

RC_GTEST_PROP(Philox, BelowIsBelow, (std::uint64_t seed, std::uint64_t bound)) {
  RC_PRE(bound > 0);
  Philox random(seed);
  for (int i = 0; i < 10; ++i) RC_ASSERT(random.below(bound) < bound);
}

}  // namespace
}  // namespace motley
