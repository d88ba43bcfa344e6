#include "transport/tcp/tls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "base/philox.h"
#include "transport/tcp/tls_pair.h"

namespace motley::transport {
namespace {

using Bytes = std::vector<std::byte>;
using What = TlsSession::Opened::What;

Bytes random_bytes_of(std::size_t size) {
  Philox random(size, 3);
  Bytes bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next_u32() & 0xFFU);
  return bytes;
}

Bytes taken(TlsSession& from) {
  Bytes bytes = from.output();
  from.output().clear();
  return bytes;
}

Bytes opened(TlsSession& by, std::span<const std::byte> sealed, std::size_t at_once = kRecordBytes) {
  by.provide(sealed);
  Bytes plain, part(at_once);
  for (TlsSession::Opened next = by.open(part); next.what == What::data; next = by.open(part))
    plain.insert(plain.end(), part.begin(), part.begin() + static_cast<std::ptrdiff_t>(next.count));
  return plain;
}

TEST(Tls, ARecordOfAnySizeIsOpened) {
  TlsPair pair;
  for (const std::size_t size : {std::size_t{1}, std::size_t{15}, std::size_t{4097}, kRecordBytes}) {
    const Bytes plain = random_bytes_of(size);
    pair.client().seal(plain);
    EXPECT_EQ(opened(pair.server(), taken(pair.client())), plain);
    pair.server().seal(plain);
    EXPECT_EQ(opened(pair.client(), taken(pair.server()), 100), plain);
  }
}

TEST(Tls, HalfARecordWaitsForTheRest) {
  TlsPair pair;
  const Bytes plain = random_bytes_of(1000);
  pair.client().seal(plain);
  const Bytes sealed = taken(pair.client());
  EXPECT_EQ(opened(pair.server(), std::span(sealed).first(500)), Bytes());
  EXPECT_EQ(opened(pair.server(), std::span(sealed).subspan(500)), plain);
}

TEST(Tls, AChangedBitEndsIt) {
  TlsPair pair;
  pair.client().seal(random_bytes_of(100));
  Bytes sealed = taken(pair.client());
  sealed[50] ^= std::byte{4};
  pair.server().provide(sealed);
  Bytes plain(kRecordBytes);
  EXPECT_EQ(pair.server().open(plain).what, What::failed);
  EXPECT_NE(pair.server().failure(), "");
}

TEST(Tls, ARecordThatComesAgainEndsIt) {
  TlsPair pair;
  pair.client().seal(random_bytes_of(100));
  const Bytes sealed = taken(pair.client());
  EXPECT_EQ(opened(pair.server(), sealed).size(), 100U);
  pair.server().provide(sealed);
  Bytes plain(kRecordBytes);
  EXPECT_EQ(pair.server().open(plain).what, What::failed);
}

TEST(Tls, AFarewellIsTheEnd) {
  TlsPair pair;
  pair.client().seal(random_bytes_of(10));
  pair.client().seal_end();
  const Bytes sealed = taken(pair.client());
  EXPECT_EQ(opened(pair.server(), sealed).size(), 10U);
  Bytes plain(1);
  EXPECT_EQ(pair.server().open(plain).what, What::end);
}

TEST(Tls, KeysAreRenewedAfterSoManyRecords) {
  TlsPair pair(2);
  const Bytes plain = random_bytes_of(10);
  std::vector<std::size_t> sizes;
  for (int i = 0; i < 5; ++i) {
    pair.client().seal(plain);
    const Bytes sealed = taken(pair.client());
    sizes.push_back(sealed.size());
    EXPECT_EQ(opened(pair.server(), sealed), plain);
  }
  EXPECT_GT(sizes[2], sizes[1]);  // what says that the keys change
  EXPECT_EQ(sizes[3], sizes[1]);
  EXPECT_EQ(sizes[4], sizes[2]);
}

}  // namespace
}  // namespace motley::transport
