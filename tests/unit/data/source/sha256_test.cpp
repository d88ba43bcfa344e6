#include "data/source/sha256.h"

#include <gtest/gtest.h>

#include "../fixtures.h"

namespace motley::data {
namespace {

using test::Bytes;
using test::bytes_of_text;

std::string sha256(const Bytes& bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.finish();
}

TEST(Sha256, MatchesTheExamplesOfFips180) {
  EXPECT_EQ(sha256({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256(bytes_of_text("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256, DoesNotDependOnThePieces) {
  const Bytes all(300, std::byte{'x'});
  for (std::size_t cut = 0; cut <= all.size(); ++cut) {
    Sha256 hash;
    hash.add(std::span(all).first(cut));
    hash.add(std::span(all).subspan(cut));
    ASSERT_EQ(hash.finish(), sha256(all)) << cut;
  }
}

}  // namespace
}  // namespace motley::data
