#include "transport/tcp/records.h"

#include <algorithm>
#include <array>

#include "base/assert.h"

namespace motley::transport {
namespace {

// Kinds of content (RFC 8446, 5.1).
constexpr std::uint8_t kAlert = 21;
constexpr std::uint8_t kHandshake = 22;
constexpr std::uint8_t kData = 23;

// What is said in them (6.1, 4.6.3).
constexpr std::array kFarewell{std::byte{1}, std::byte{0}};
constexpr std::array kNewKeys{std::byte{24}, std::byte{0}, std::byte{0}, std::byte{1}, std::byte{0}};

std::array<std::byte, RecordKeys::kHeaderBytes> record_header(std::size_t sealed_bytes) {
  return {std::byte{kData}, std::byte{3}, std::byte{3}, static_cast<std::byte>(sealed_bytes >> 8),
          static_cast<std::byte>(sealed_bytes & 0xFF)};
}

}  // namespace

RecordSealer::RecordSealer(const TrafficSecret& secret, std::uint64_t records_a_key)
    : keys_(secret, RecordKeys::Use::seal), records_a_key_(records_a_key), output_(kOutputBytes) {
  MOTLEY_ASSERT(records_a_key_ > 1);
}

void RecordSealer::begin(std::size_t size) {
  MOTLEY_ASSERT(has_room() && size > 0 && size <= kRecordBytes);
  if (keys_.records() + 1 >= records_a_key_) renew();
  begin_as(kData, size);
}

void RecordSealer::begin_as(std::uint8_t kind, std::size_t size) {
  MOTLEY_ASSERT(missing_ == 0);
  const auto header = record_header(size + 1 + RecordKeys::kTagBytes);
  std::ranges::copy(header, output_.begin() + static_cast<std::ptrdiff_t>(used_));
  used_ += header.size();
  missing_ = size;
  kind_ = kind;
  keys_.begin(header);
}

void RecordSealer::add(std::span<const std::byte> plain) {
  MOTLEY_ASSERT(plain.size() <= missing_);
  keys_.piece(plain, output_.data() + used_);
  used_ += plain.size();
  missing_ -= plain.size();
}

void RecordSealer::end() {
  MOTLEY_ASSERT(missing_ == 0);
  const std::byte kind{kind_};
  keys_.piece({&kind, 1}, output_.data() + used_);
  ++used_;
  keys_.end_sealed(RecordKeys::Tag(output_.data() + used_, RecordKeys::kTagBytes));
  used_ += RecordKeys::kTagBytes;
}

void RecordSealer::renew() {
  begin_as(kHandshake, kNewKeys.size());
  add(kNewKeys);
  end();
  keys_.renew();
}

void RecordSealer::close() {
  MOTLEY_ASSERT(has_room());
  begin_as(kAlert, kFarewell.size());
  add(kFarewell);
  end();
}

RecordOpener::Opened RecordOpener::fail(const char* why) {
  failure_ = std::string("TLS: ") + why;
  return {Opened::What::failed, 0};
}

RecordOpener::Opened RecordOpener::open(std::span<const std::byte>& sealed, std::span<std::byte> first,
                                        std::span<std::byte> rest) {
  MOTLEY_ASSERT(rest.size() >= kRecordBytes);
  while (true) {
    if (sealed.size() < RecordKeys::kHeaderBytes) return {Opened::What::want_input, 0};
    if (sealed[0] != std::byte{kData}) return fail("a record that is not encrypted");
    const std::size_t size = std::to_integer<std::size_t>(sealed[3]) << 8 | std::to_integer<std::size_t>(sealed[4]);
    if (size < 1 + RecordKeys::kTagBytes) return fail("a record that is too short");
    if (RecordKeys::kHeaderBytes + size > kSealedBytesMax) return fail("a record that is too long");
    if (sealed.size() < RecordKeys::kHeaderBytes + size) return {Opened::What::want_input, 0};
    const std::span<const std::byte> record = sealed.first(RecordKeys::kHeaderBytes + size);
    sealed = sealed.subspan(record.size());
    const Opened opened = open_one(record, first, rest);
    if (opened.what != Opened::What::data) return opened;
    if (opened.count > 0) {
      silent_ = 0;
      return opened;
    }
    if (++silent_ > kSilentMax) return fail("too many records without data");
  }
}

RecordOpener::Opened RecordOpener::open_one(std::span<const std::byte> record, std::span<std::byte> first,
                                            std::span<std::byte> rest) {
  const std::span<const std::byte> sealed = record.subspan(RecordKeys::kHeaderBytes);
  std::size_t count = sealed.size() - RecordKeys::kTagBytes - 1;
  const std::size_t in_first = std::min(count, first.size());
  std::byte kind_byte{};
  keys_.begin(record.first<RecordKeys::kHeaderBytes>());
  keys_.piece(sealed.first(in_first), first.data());
  keys_.piece(sealed.subspan(in_first, count - in_first), rest.data());
  keys_.piece(sealed.subspan(count, 1), &kind_byte);
  if (!keys_.end_opened(sealed.last<RecordKeys::kTagBytes>())) return fail("a record was changed on its way");
  // After the kind there may be zeros, as many as the other side likes.
  while (kind_byte == std::byte{0}) {
    if (count == 0) return fail("a record of zeros");
    --count;
    kind_byte = count < in_first ? first[count] : rest[count - in_first];
  }
  const auto kind = std::to_integer<std::uint8_t>(kind_byte);
  if (kind == kData) return {Opened::What::data, count};
  std::array<std::byte, kNewKeys.size()> content{};  // what is longer is nothing that is known
  if (count > content.size()) return fail("a message that has no place here");
  for (std::size_t i = 0; i < count; ++i) content[i] = i < in_first ? first[i] : rest[i - in_first];
  return on_other(kind, std::span(content).first(count));
}

RecordOpener::Opened RecordOpener::on_other(std::uint8_t kind, std::span<const std::byte> content) {
  if (kind == kAlert && std::ranges::equal(content, kFarewell)) return {Opened::What::end, 0};
  if (kind == kAlert) return fail("the other side gave up");
  // Each side renews its own keys; to ask the other one for that is no part of motley/1.
  if (kind != kHandshake || !std::ranges::equal(content, kNewKeys)) return fail("a message that has no place here");
  keys_.renew();
  return {Opened::What::data, 0};
}

}  // namespace motley::transport
