#include "transport/tcp/records.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/philox.h"

namespace motley::transport {
namespace {

using Bytes = std::vector<std::byte>;
using What = RecordOpener::Opened::What;

Bytes bytes_of_hex(std::string_view hex) {
  Bytes bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  return bytes;
}

TrafficSecret secret_of(RecordSuite suite, const Bytes& bytes) {
  TrafficSecret secret;
  secret.suite = suite;
  secret.size = bytes.size();
  std::memcpy(secret.bytes.data(), bytes.data(), bytes.size());
  return secret;
}

/// Of the client's data in the first trace of RFC 8448.
TrafficSecret rfc_secret() {
  return secret_of(RecordSuite::aes_128_gcm,
                   bytes_of_hex("9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5"));
}

TrafficSecret some_secret(RecordSuite suite) {
  return secret_of(suite, Bytes(suite == RecordSuite::aes_256_gcm ? 48 : 32, std::byte{7}));
}

Bytes random_bytes_of(std::size_t size) {
  Philox random(size, 3);
  Bytes bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next_u32() & 0xFFU);
  return bytes;
}

void seal(RecordSealer& sealer, std::span<const std::byte> plain) {
  sealer.begin(plain.size());
  sealer.add(plain);
  sealer.end();
}

Bytes sealed_record(const TrafficSecret& secret, std::span<const std::byte> plain) {
  RecordSealer sealer(secret);
  seal(sealer, plain);
  return {sealer.output().begin(), sealer.output().end()};
}

/// One record of any kind with so many zeros behind it, as a peer may make them.
Bytes record_of(RecordKeys& keys, std::uint8_t kind, Bytes content, std::size_t zeros = 0) {
  content.push_back(std::byte{kind});
  content.resize(content.size() + zeros);
  const std::size_t size = content.size() + RecordKeys::kTagBytes;
  Bytes record{std::byte{23}, std::byte{3}, std::byte{3}, static_cast<std::byte>(size >> 8),
               static_cast<std::byte>(size & 0xFF)};
  keys.begin(std::span(std::as_const(record)).first<RecordKeys::kHeaderBytes>());
  record.resize(RecordKeys::kHeaderBytes + size);
  keys.piece(content, record.data() + RecordKeys::kHeaderBytes);
  keys.end_sealed(std::span(record).last<RecordKeys::kTagBytes>());
  return record;
}

class Opening {
 public:
  explicit Opening(const TrafficSecret& secret, std::size_t first_bytes = 0) : opener_(secret), first_(first_bytes) {}
  What open(std::span<const std::byte> sealed) {
    const RecordOpener::Opened opened = opener_.open(sealed, first_, rest_);
    left_ = sealed.size();
    const std::size_t in_first = std::min(opened.count, first_.size());
    plain_.assign(first_.begin(), first_.begin() + static_cast<std::ptrdiff_t>(in_first));
    plain_.insert(plain_.end(), rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(opened.count - in_first));
    return opened.what;
  }
  [[nodiscard]] const Bytes& plain() const { return plain_; }
  [[nodiscard]] std::size_t left() const { return left_; }
  [[nodiscard]] const std::string& failure() const { return opener_.failure(); }

 private:
  RecordOpener opener_;
  Bytes first_, rest_ = Bytes(kRecordBytes), plain_;
  std::size_t left_ = 0;
};

Bytes counting(std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i);
  return bytes;
}

TEST(Records, KeysAreThoseOfRfc8448) {
  const RecordKeys keys(rfc_secret(), RecordKeys::Use::seal);
  EXPECT_TRUE(std::ranges::equal(std::as_bytes(keys.key()), bytes_of_hex("17422dda596ed5d9acd890e3c63f5051")));
  EXPECT_TRUE(std::ranges::equal(std::as_bytes(keys.iv()), bytes_of_hex("5b78923dee08579033e523d9")));
}

TEST(Records, ARecordIsThatOfRfc8448) {
  const Bytes expected = bytes_of_hex(
      "1703030043a23f7054b62c94d0affafe8228ba55cbefacea42f914aa66bcab3f2b9819a8a5b46b395bd54a9a20441e2b62974e1f5a"
      "6292a2977014bd1e3deae63aeebb21694915e4");
  EXPECT_EQ(sealed_record(rfc_secret(), counting(50)), expected);
  Opening opening(rfc_secret());
  ASSERT_EQ(opening.open(expected), What::data);
  EXPECT_EQ(opening.plain(), counting(50));
}

TEST(Records, EverySuiteOpensWhatItSealed) {
  for (const RecordSuite suite : {RecordSuite::aes_128_gcm, RecordSuite::aes_256_gcm, RecordSuite::chacha20_poly1305}) {
    RecordSealer sealer(some_secret(suite));
    Opening opening(some_secret(suite));
    for (const std::size_t size : {std::size_t{1}, std::size_t{15}, std::size_t{4097}, kRecordBytes}) {
      const Bytes plain = random_bytes_of(size);
      sealer.clear();
      seal(sealer, plain);
      ASSERT_EQ(opening.open(sealer.output()), What::data);
      EXPECT_EQ(opening.plain(), plain);
      EXPECT_EQ(opening.left(), 0U);
    }
  }
}

TEST(Records, PiecesAreOneRecord) {
  const Bytes plain = random_bytes_of(1000);
  RecordSealer sealer(rfc_secret());
  sealer.begin(plain.size());
  for (std::size_t at = 0; at < plain.size(); at += 37)
    sealer.add(std::span(plain).subspan(at, std::min<std::size_t>(37, plain.size() - at)));
  sealer.end();
  EXPECT_TRUE(std::ranges::equal(sealer.output(), sealed_record(rfc_secret(), plain)));
}

TEST(Records, WhatDoesNotFitGoesToTheRest) {
  const Bytes plain = random_bytes_of(500);
  const Bytes sealed = sealed_record(rfc_secret(), plain);
  for (const std::size_t first : {0, 1, 16, 499, 500, 501, 9000}) {
    Opening opening(rfc_secret(), first);
    ASSERT_EQ(opening.open(sealed), What::data);
    EXPECT_EQ(opening.plain(), plain);
  }
}

TEST(Records, HalfARecordIsLeftWhereItIs) {
  const Bytes sealed = sealed_record(rfc_secret(), counting(20));
  Opening opening(rfc_secret());
  for (std::size_t size = 0; size < sealed.size(); ++size) {
    ASSERT_EQ(opening.open(std::span(sealed).first(size)), What::want_input);
    ASSERT_EQ(opening.left(), size);
  }
  EXPECT_EQ(opening.open(sealed), What::data);
}

TEST(Records, EveryChangedBitIsFound) {
  const Bytes sealed = sealed_record(rfc_secret(), counting(20));
  for (std::size_t bit = 0; bit < 8 * sealed.size(); ++bit) {
    Bytes changed = sealed;
    changed[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    Opening opening(rfc_secret());
    const What what = opening.open(changed);
    // A longer length, in the two bytes of the header that say it, makes it wait for more.
    EXPECT_TRUE(what == What::failed || (what == What::want_input && (bit / 8 == 3 || bit / 8 == 4))) << "bit " << bit;
  }
}

TEST(Records, OneThatComesAgainIsNotOpened) {
  const Bytes sealed = sealed_record(rfc_secret(), counting(20));
  Opening opening(rfc_secret());
  ASSERT_EQ(opening.open(sealed), What::data);
  EXPECT_EQ(opening.open(sealed), What::failed);
}

TEST(Records, ZerosBehindAreCutOff) {
  for (const std::size_t first : {0, 3, 100}) {
    RecordKeys keys(rfc_secret(), RecordKeys::Use::seal);
    Opening opening(rfc_secret(), first);
    ASSERT_EQ(opening.open(record_of(keys, 23, counting(10), 300)), What::data);
    EXPECT_EQ(opening.plain(), counting(10));
  }
  RecordKeys keys(rfc_secret(), RecordKeys::Use::seal);
  Opening opening(rfc_secret());
  EXPECT_EQ(opening.open(record_of(keys, 0, {}, 300)), What::failed);
}

TEST(Records, LengthsAreLimited) {
  for (const std::size_t size : {0U, 16U, 16'402U, 65'535U}) {
    const Bytes header{std::byte{23}, std::byte{3}, std::byte{3}, static_cast<std::byte>(size >> 8),
                       static_cast<std::byte>(size & 0xFF)};
    Opening opening(rfc_secret());
    EXPECT_EQ(opening.open(header), What::failed) << size;
  }
}

TEST(Records, AFarewellIsTheEnd) {
  RecordSealer sealer(rfc_secret());
  seal(sealer, counting(3));
  sealer.close();
  const Bytes sealed(sealer.output().begin(), sealer.output().end());
  Opening opening(rfc_secret(), 1);
  ASSERT_EQ(opening.open(sealed), What::data);
  EXPECT_EQ(opening.open(std::span(sealed).last(opening.left())), What::end);
}

TEST(Records, OnlyDataFarewellsAndNewKeysAreTaken) {
  const Bytes asks_for_keys = bytes_of_hex("1800000101"), fatal = bytes_of_hex("0228"), ticket(60, std::byte{4});
  const std::vector<std::pair<std::uint8_t, Bytes>> others{
      {22, asks_for_keys}, {21, fatal}, {22, ticket}, {22, {}}, {21, {}}, {20, {std::byte{1}}}, {99, counting(5)}};
  for (const auto& [kind, content] : others) {
    RecordKeys keys(rfc_secret(), RecordKeys::Use::seal);
    Opening opening(rfc_secret());
    EXPECT_EQ(opening.open(record_of(keys, kind, content)), What::failed) << int{kind};
    EXPECT_FALSE(opening.failure().empty());
  }
}

TEST(Records, SilenceIsLimited) {
  RecordKeys keys(rfc_secret(), RecordKeys::Use::seal);
  Opening opening(rfc_secret());
  for (int i = 0; i < 32; ++i) ASSERT_EQ(opening.open(record_of(keys, 23, {})), What::want_input);
  EXPECT_EQ(opening.open(record_of(keys, 23, {})), What::failed);
}

TEST(Records, KeysAreRenewedAfterSoManyRecords) {
  RecordSealer sealer(rfc_secret(), 5);
  Opening opening(rfc_secret());
  RecordKeys first(rfc_secret(), RecordKeys::Use::seal);
  std::size_t records = 0;
  for (std::size_t i = 0; i < 13; ++i) {
    const Bytes plain = counting(i + 1);
    sealer.clear();
    seal(sealer, plain);
    const bool with_old_keys = std::ranges::equal(sealer.output(), record_of(first, 23, plain));
    EXPECT_EQ(with_old_keys, i < 4);  // the fifth one says that they change
    ASSERT_EQ(opening.open(sealer.output()), What::data);
    EXPECT_EQ(opening.plain(), plain);
    records += sealer.output().size() > plain.size() + 22 ? 2 : 1;
  }
  EXPECT_EQ(records, 16U);
}

TEST(Records, RoomIsKeptForALongOne) {
  RecordSealer sealer(rfc_secret(), 3);
  const Bytes plain(kRecordBytes);
  std::size_t count = 0;
  while (sealer.has_room()) {
    seal(sealer, plain);
    ++count;
  }
  EXPECT_EQ(count, 8U);
}

}  // namespace
}  // namespace motley::transport
