// Records of TLS: whatever a peer that has the keys seals, and whatever somebody puts between, what comes out is what
// was sealed up to the first thing that has no place there, and nothing is written where it does not belong.

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/assert.h"
#include "choices.h"
#include "transport/tcp/records.h"

namespace {

using motley::fuzz::Choices;
using motley::transport::kRecordBytes;
using motley::transport::RecordKeys;
using motley::transport::RecordOpener;
using motley::transport::TrafficSecret;
using Bytes = std::vector<std::byte>;
using What = RecordOpener::Opened::What;

TrafficSecret secret() {
  TrafficSecret secret;
  secret.size = 32;
  return secret;
}

/// A stream and what has to come out of it.
struct Stream {
  RecordKeys keys{secret(), RecordKeys::Use::seal};
  Bytes bytes, data;
  std::size_t silent = 0;
  bool good = true;  // nothing came yet that ends it

  void record(std::uint8_t kind, const Bytes& content, std::size_t zeros) {
    Bytes plain = content;
    plain.push_back(std::byte{kind});
    plain.resize(plain.size() + zeros);
    const std::size_t size = plain.size() + RecordKeys::kTagBytes;
    Bytes sealed{std::byte{23}, std::byte{3}, std::byte{3}, static_cast<std::byte>(size >> 8),
                 static_cast<std::byte>(size & 0xFF)};
    keys.begin(std::span(std::as_const(sealed)).first<RecordKeys::kHeaderBytes>());
    sealed.resize(RecordKeys::kHeaderBytes + size);
    keys.piece(plain, sealed.data() + RecordKeys::kHeaderBytes);
    keys.end_sealed(std::span(sealed).last<RecordKeys::kTagBytes>());
    bytes.insert(bytes.end(), sealed.begin(), sealed.end());
    expect(kind, content, plain.size());
  }
  void expect(std::uint8_t kind, Bytes content, std::size_t plain_bytes) {
    if (!good) return;
    for (; kind == 0 && !content.empty(); content.pop_back()) kind = std::to_integer<std::uint8_t>(content.back());
    constexpr std::array kNewKeys{std::byte{24}, std::byte{0}, std::byte{0}, std::byte{1}, std::byte{0}};
    const bool renews = kind == 22 && std::ranges::equal(content, kNewKeys);
    good = plain_bytes <= kRecordBytes + 1 && (kind == 23 || renews);
    if (!good) return;
    if (renews) keys.renew();
    silent = renews || content.empty() ? silent + 1 : 0;
    good = silent <= 32;
    if (kind == 23) data.insert(data.end(), content.begin(), content.end());
  }
};

Bytes some_bytes(Choices& choices, std::size_t size) {
  Bytes bytes(size);
  for (std::byte& byte : bytes) byte = std::byte{choices.byte()};
  return bytes;
}

void extend(Stream& stream, Choices& choices) {
  constexpr std::array<std::size_t, 6> kSizes{0, 1, 2, 5, 300, kRecordBytes};
  switch (choices.below(5)) {
    case 0:
      return stream.record(22, {std::byte{24}, std::byte{0}, std::byte{0}, std::byte{1}, std::byte{choices.byte()}}, 0);
    case 1: {
      const Bytes noise = some_bytes(choices, choices.below(40) + 1);
      stream.bytes.insert(stream.bytes.end(), noise.begin(), noise.end());
      stream.good = false;
      return;
    }
    case 2:
      return stream.record(choices.byte(), some_bytes(choices, choices.below(8)), choices.below(200));
    default:
      return stream.record(23, some_bytes(choices, kSizes[choices.below(kSizes.size())]), choices.below(3));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Choices choices(std::span(data, size));
  const std::size_t first_bytes = choices.below(4) * 5000 + choices.below(256);
  Stream stream;
  while (!choices.empty() && stream.bytes.size() < 200'000) extend(stream, choices);
  RecordOpener opener(secret());
  std::span<const std::byte> sealed = stream.bytes;
  Bytes opened;
  while (true) {
    // New memory each time, so that a byte too many is found.
    Bytes first(first_bytes), rest(kRecordBytes);
    const RecordOpener::Opened got = opener.open(sealed, first, rest);
    if (got.what != What::data) {
      MOTLEY_ASSERT(got.what != What::failed || !opener.failure().empty());
      break;
    }
    MOTLEY_ASSERT(got.count > 0 && got.count <= kRecordBytes);
    const std::size_t in_first = std::min(got.count, first.size());
    opened.insert(opened.end(), first.begin(), first.begin() + static_cast<std::ptrdiff_t>(in_first));
    opened.insert(opened.end(), rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(got.count - in_first));
  }
  MOTLEY_ASSERT(opened == stream.data);
  return 0;
}
