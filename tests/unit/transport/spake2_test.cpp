#include "transport/spake2.h"

#include <gtest/gtest.h>

#include "base/hex.h"

namespace motley::transport {
namespace {

struct Vector {
  const char *a, *b, *w, *x, *share_a, *y, *share_b, *shared, *confirm_a, *confirm_b;
};

// RFC 9382, appendix B.
constexpr Vector kVectors[] = {
    {"server", "client", "2ee57912099d31560b3a44b1184b9b4866e904c49d12ac5042c97dca461b1a5f",
     "43dd0fd7215bdcb482879fca3220c6a968e66d70b1356cac18bb26c84a78d729",
     "04a56fa807caaa53a4d28dbb9853b9815c61a411118a6fe516a8798434751470f9010153ac33d0d5f2047ffdb1a3e42c9b4e6be662766e1ee"
     "b4116988ede5f912c",
     "dcb60106f276b02606d8ef0a328c02e4b629f84f89786af5befb0bc75b6e66be",
     "0406557e482bd03097ad0cbaa5df82115460d951e3451962f1eaf4367a420676d09857ccbc522686c83d1852abfa8ed6e4a1155cf8f1543ce"
     "ca528afb591a1e0b7",
     "0e0672dc86f8e45565d338b0540abe69", "58ad4aa88e0b60d5061eb6b5dd93e80d9c4f00d127c65b3b35b1b5281fee38f0",
     "d3e2e547f1ae04f2dbdbf0fc4b79f8ecff2dff314b5d32fe9fcef2fb26dc459b"},
    {"", "client", "0548d8729f730589e579b0475a582c1608138ddf7054b73b5381c7e883e2efae",
     "403abbe3b1b4b9ba17e3032849759d723939a27a27b9d921c500edde18ed654b",
     "04a897b769e681c62ac1c2357319a3d363f610839c4477720d24cbe32f5fd85f44fb92ba966578c1b712be6962498834078262caa5b441ecf"
     "a9d4a9485720e918a",
     "903023b6598908936ea7c929bd761af6039577a9c3f9581064187c3049d87065",
     "04e0f816fd1c35e22065d5556215c097e799390d16661c386e0ecc84593974a61b881a8c82327687d0501862970c64565560cb5671f696048"
     "050ca66ca5f8cc7fc",
     "642f05c473c2cd79909f9a841e2f30a7", "47d29e6666af1b7dd450d571233085d7a9866e4d49d2645e2df975489521232b",
     "3313c5cefc361d27fb16847a91c2a73b766ffa90a4839122a9b70a2f6bd1d6df"},
    {"server", "", "626e0cdc7b14c9db3e52a0b1b3a768c98e37852d5db30febe0497b14eae8c254",
     "07adb3db6bc623d3399726bfdbfd3d15a58ea776ab8a308b00392621291f9633",
     "04f88fb71c99bfffaea370966b7eb99cd4be0ff1a7d335caac4211c4afd855e2e15a873b298503ad8ba1d9cbb9a392d2ba309b48bfd7879ae"
     "fd0f2cea6009763b0",
     "b6a4fc8dbb629d4ba51d6f91ed1532cf87adec98f25dd153a75accafafedec16",
     "040c269d6be017dccb15182ac6bfcd9e2a14de019dd587eaf4bdfd353f031101e7cca177f8eb362a6e83e7d5e729c0732e1b528879c086f39"
     "ba0f31a9661bd34db",
     "005184ff460da2ce59062c87733c299c", "bc9f9bbe99f26d0b2260e6456e05a86196a3307ec6663a18bf6ac825736533b2",
     "c2370e1bf813b086dff0d834e74425a06e6390f48f5411900276dcccc5a297ec"},
    {"", "", "7bf46c454b4c1b25799527d896508afd5fc62ef4ec59db1efb49113063d70cca",
     "8cef65df64bb2d0f83540c53632de911b5b24b3eab6cc74a97609fd659e95473",
     "04a65b367a3f613cf9f0654b1b28a1e3a8a40387956c8ba6063e8658563890f46ca1ef6a676598889fc28de2950ab8120b79a5ef1ea4c9f44"
     "bc98f585634b46d66",
     "d7a66f64074a84652d8d623a92e20c9675c61cb5b4f6a0063e4648a2fdc02d53",
     "04589f13218822710d98d8b2123a079041052d9941b9cf88c6617ddb2fcc0494662eea8ba6b64692dc318250030c6af045cb738bc81ba35b0"
     "43c3dcb46adf6f58d",
     "fc6374762ba5cf11f4b2caa08b2cd1b9", "dfb4db8d48ae5a675963ea5e6c19d98d4ea028d8e898dad96ea19a80ade95dca",
     "d0f0609d1613138d354f7e95f19fb556bf52d751947241e8c7118df5ef0ae175"},
};

Spake2::Scalar scalar(const char* text) {
  Spake2::Scalar out{};
  EXPECT_TRUE(from_hex(text, out));
  return out;
}

TEST(Spake2, ComesToTheNumbersOfTheRfc) {
  for (const Vector& vector : kVectors) {
    const Spake2 a(Spake2::Role::a, scalar(vector.w), scalar(vector.x));
    const Spake2 b(Spake2::Role::b, scalar(vector.w), scalar(vector.y));
    EXPECT_EQ(to_hex(a.share()), vector.share_a);
    EXPECT_EQ(to_hex(b.share()), vector.share_b);
    const Spake2::Context context{vector.a, vector.b, ""};
    for (const auto& keys : {a.finish(b.share(), context), b.finish(a.share(), context)}) {
      ASSERT_TRUE(keys);
      EXPECT_EQ(to_hex(keys->shared), vector.shared);
      EXPECT_EQ(to_hex(keys->confirm_a), vector.confirm_a);
      EXPECT_EQ(to_hex(keys->confirm_b), vector.confirm_b);
    }
  }
}

class TwoSides : public testing::Test {
 protected:
  const Spake2 a_{Spake2::Role::a, Spake2::scalar_of("123456")};
  const Spake2 b_{Spake2::Role::b, Spake2::scalar_of("123456")};
  const Spake2::Context context_{"laptop", "desktop", "a connection"};
};

TEST_F(TwoSides, AgreeWhereCodeAndContextAreTheSame) {
  const auto of_a = a_.finish(b_.share(), context_), of_b = b_.finish(a_.share(), context_);
  ASSERT_TRUE(of_a && of_b);
  EXPECT_EQ(of_a->confirm_a, of_b->confirm_a);
  EXPECT_EQ(of_a->confirm_b, of_b->confirm_b);
  EXPECT_NE(of_a->confirm_a, of_a->confirm_b);
}

TEST_F(TwoSides, DoNotAgreeOnAnotherCode) {
  const Spake2 guesses(Spake2::Role::a, Spake2::scalar_of("123457"));
  const auto of_a = guesses.finish(b_.share(), context_), of_b = b_.finish(guesses.share(), context_);
  ASSERT_TRUE(of_a && of_b);
  EXPECT_NE(of_a->confirm_a, of_b->confirm_a);
  EXPECT_NE(of_a->confirm_b, of_b->confirm_b);
}

TEST_F(TwoSides, DoNotAgreeWhereOneBelievesToTalkToSomebodyElse) {
  const auto of_a = a_.finish(b_.share(), context_);
  ASSERT_TRUE(of_a);
  for (const Spake2::Context& other :
       {Spake2::Context{"phone", "desktop", "a connection"}, Spake2::Context{"laptop", "another", "a connection"},
        Spake2::Context{"laptop", "desktop", "another connection"},
        Spake2::Context{"laptopd", "esktop", "a connection"}, Spake2::Context{"desktop", "laptop", "a connection"}}) {
    const auto of_b = b_.finish(a_.share(), other);
    ASSERT_TRUE(of_b);
    EXPECT_NE(of_a->confirm_a, of_b->confirm_a);
    EXPECT_NE(of_a->confirm_b, of_b->confirm_b);
  }
}

TEST_F(TwoSides, WhatOneAttemptShowedIsWorthNothingInAnother) {
  const auto first = a_.finish(b_.share(), context_);
  const Spake2 again(Spake2::Role::b, Spake2::scalar_of("123456"));
  const auto second = again.finish(a_.share(), context_);  // the share of the first attempt, played back
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->confirm_a, second->confirm_a);
}

TEST_F(TwoSides, RefuseWhatIsNoPoint) {
  const Spake2::Share good = b_.share();
  Spake2::Share off = good;
  off.back() ^= 1;
  Spake2::Share hybrid = good;
  hybrid.front() = static_cast<std::uint8_t>(6 + (good.back() & 1));
  EXPECT_FALSE(a_.finish(off, context_));
  EXPECT_FALSE(a_.finish(hybrid, context_));
  EXPECT_FALSE(a_.finish(Spake2::Share{}, context_)) << "infinity, filled up";
  Spake2::Share zero{};
  zero.front() = 4;
  EXPECT_FALSE(a_.finish(zero, context_));
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(a_.finish(std::span(good).first(size), context_)) << size;
  EXPECT_TRUE(a_.finish(good, context_));
}

// The mask alone as a share: the key would be the point at infinity whatever the secret.
TEST_F(TwoSides, RefuseAShareThatIsTheMaskItself) {
  const Spake2 masked(Spake2::Role::b, Spake2::scalar_of("123456"), Spake2::Scalar{});
  EXPECT_FALSE(a_.finish(masked.share(), context_));
}

TEST(Spake2Scalar, IsNeitherZeroNorTheSameTwice) {
  EXPECT_NE(Spake2::random_scalar(), Spake2::random_scalar());
  EXPECT_NE(Spake2::scalar_of("000000"), Spake2::scalar_of("000001"));
  EXPECT_NE(Spake2::scalar_of(""), Spake2::Scalar{});
  EXPECT_EQ(Spake2::scalar_of("123456"), Spake2::scalar_of("123456"));
}

}  // namespace
}  // namespace motley::transport
