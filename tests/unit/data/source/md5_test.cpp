#include "data/source/md5.h"

#include <gtest/gtest.h>

#include "../fixtures.h"

namespace motley::data {
namespace {

using test::Bytes;
using test::bytes_of_text;

std::string md5(const Bytes& bytes) {
  Md5 hash;
  hash.add(bytes);
  return hash.finish();
}

TEST(Md5, MatchesTheVectorsOfRfc1321) {
  EXPECT_EQ(md5({}), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(md5(bytes_of_text("abc")), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(md5(bytes_of_text("12345678901234567890123456789012345678901234567890123456789012345678901234567890")),
            "57edf4a22be3c955ac49da2e2107b67a");
}

TEST(Md5, DoesNotDependOnThePieces) {
  const Bytes all(300, std::byte{'x'});
  for (std::size_t cut = 0; cut <= all.size(); ++cut) {
    Md5 hash;
    hash.add(std::span(all).first(cut));
    hash.add(std::span(all).subspan(cut));
    ASSERT_EQ(hash.finish(), md5(all)) << cut;
  }
}

}  // namespace
}  // namespace motley::data
