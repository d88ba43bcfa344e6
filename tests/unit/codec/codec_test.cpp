#include "codec/codec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "base/philox.h"
#include "base/xxh64.h"
#include "codec/delta.h"
#include "codec/kernels.h"

namespace motley::codec {
namespace {

constexpr std::size_t kCount = 600;

// As in tests/conformance/codec_vectors.py.
std::vector<float> golden_values() {
  std::vector<float> values(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    const auto number = static_cast<double>(i * 7919 % 1009) - 504;
    values[i] = static_cast<float>(std::ldexp(number, -static_cast<int>(i % 23)));
    if (i >= 64 && i < 128) values[i] = 0;
    if (i >= 512 && i < 576) values[i] = std::ldexp(values[i], -110);
  }
  return values;
}

std::vector<float> golden_residual() {
  std::vector<float> residual(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    const auto number = static_cast<double>(i * 104729 % 997) - 498;
    residual[i] = (i >= 64 && i < 128) || i >= 512 ? 0 : static_cast<float>(std::ldexp(number, -14));
  }
  return residual;
}

std::vector<float> golden_spoiled() {
  std::vector<float> values = golden_values();
  values[3] = std::numeric_limits<float>::quiet_NaN();
  values[300] = -std::numeric_limits<float>::infinity();
  values[599] = 0x1p127F;
  return values;
}

// Where a replica stands that is to become golden_values().
std::vector<float> golden_held() {
  std::vector<float> held = golden_values();
  for (std::size_t i = 0; i < kCount; ++i) {
    const auto number = static_cast<double>(i * 104729 % 997) - 498;
    held[i] -= static_cast<float>(std::ldexp(number, -static_cast<int>(12 + i % 7)));
  }
  return held;
}

std::vector<std::byte> file(CodecId codec, const std::string& kind) {
  std::ifstream in(std::string(MOTLEY_TEST_DATA "/") + std::string(to_word(codec)) + "_" + kind + ".bin",
                   std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(in)), {});
  std::vector<std::byte> result(bytes.size());
  std::memcpy(result.data(), bytes.data(), bytes.size());
  return result;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

struct Case {
  CodecId codec = CodecId::fp32;
  const Kernels* set = nullptr;
};

std::vector<Case> cases() {
  std::vector<Case> result;
  for (const Kernels* set : kernels())
    for (const CodecId codec : {CodecId::fp32, CodecId::bf16, CodecId::int8, CodecId::int4})
      result.push_back({codec, set});
  return result;
}

class EverySet : public testing::TestWithParam<Case> {
 protected:
  std::vector<std::byte> encode(const std::vector<float>& values, const std::vector<float>& residual,
                                std::vector<float>& left) const {
    std::vector<std::byte> body(encoded_bytes(GetParam().codec, values.size()));
    GetParam().set->encode(GetParam().codec, values.data(), residual.empty() ? nullptr : residual.data(), values.size(),
                           body.data(), left.empty() ? nullptr : left.data());
    return body;
  }
};

TEST_P(EverySet, WritesTheGoldenBytes) {
  if (GetParam().codec == CodecId::fp32) return;  // the floats themselves
  std::vector<float> none, left(kCount);
  EXPECT_EQ(encode(golden_values(), {}, none), file(GetParam().codec, "plain"));
  EXPECT_EQ(encode(golden_values(), golden_residual(), none), file(GetParam().codec, "feedback"));
  EXPECT_EQ(encode(golden_values(), golden_residual(), left), file(GetParam().codec, "feedback"));
  EXPECT_EQ(encode(golden_spoiled(), {}, left), file(GetParam().codec, "spoiled"));
}

TEST_P(EverySet, WritesTheGoldenDeltas) {
  const auto [codec, set] = GetParam();
  if (codec == CodecId::fp32) return;
  const std::vector<float> target = golden_values(), base = golden_held();
  std::vector<float> moved(kCount), read(kCount);
  std::vector<std::byte> body(encoded_bytes(codec, kCount));
  EXPECT_TRUE(set->encode_delta(codec, target.data(), base.data(), kCount, body.data(), moved.data()));
  EXPECT_EQ(body, file(codec, "delta"));
  EXPECT_TRUE(set->add_delta({codec, body.data(), kCount}, base.data(), read.data()));
  EXPECT_TRUE(same_bits(moved, read));
  const std::vector<std::byte> golden = file(codec, "moved");
  ASSERT_EQ(golden.size(), kCount * sizeof(float));
  EXPECT_EQ(std::memcmp(golden.data(), moved.data(), golden.size()), 0);
  if (codec == CodecId::int8) {
    EXPECT_EQ(xxh64(golden), 0xD508CD01F53CB03CU);
  }
}

TEST_P(EverySet, SaysWhatNoDeltaLeadsTo) {
  const auto [codec, set] = GetParam();
  const std::vector<float> base = golden_held();
  std::vector<float> moved(kCount);
  std::vector<std::byte> body(encoded_bytes(codec, kCount));
  EXPECT_FALSE(set->encode_delta(codec, golden_spoiled().data(), base.data(), kCount, body.data(), moved.data()));
}

// Random bit patterns: numbers of all sizes, denormal ones, NaN and infinities.
TEST_P(EverySet, AgreesWithThePortableOne) {
  Philox random(7);
  const auto [codec, set] = GetParam();
  for (const std::size_t count : {1U, 63U, 64U, 65U, 255U, 256U, 257U, 1000U, 4096U, 9000U}) {
    std::vector<float> values(count), residual(count);
    for (int round = 0; round < 8; ++round) {
      for (std::size_t i = 0; i < count; ++i) {
        std::uint32_t bits = random.next_u32();
        if (round < 4) bits = (bits & 0x80FFFFFFU) | 0x3F000000U;  // about one
        std::memcpy(&values[i], &bits, sizeof bits);
        residual[i] = static_cast<float>(random.gaussian());
      }
      std::vector<float> left(count), portable_left(count), sum(residual), portable_sum(residual);
      const auto body = encode(values, residual, left);
      std::vector<std::byte> portable_body(body.size());
      kPortable.encode(codec, values.data(), residual.data(), count, portable_body.data(), portable_left.data());
      EXPECT_EQ(body, portable_body);
      EXPECT_TRUE(same_bits(left, portable_left));
      const Body encoded{codec, body.data(), count};
      EXPECT_EQ(set->largest(encoded), kPortable.largest(encoded));
      set->add(encoded, 0, count, sum.data());
      kPortable.add(encoded, 0, count, portable_sum.data());
      const bool finite = std::isfinite(set->largest(encoded));
      EXPECT_TRUE(!finite || same_bits(sum, portable_sum));
      set->decode(encoded, 0, count, sum.data());
      kPortable.decode(encoded, 0, count, portable_sum.data());
      EXPECT_TRUE(!finite || same_bits(sum, portable_sum));
      if (codec == CodecId::fp32) continue;
      std::vector<std::byte> delta(encoded_bytes(codec, count)), portable_delta(delta.size());
      std::vector<float> moved(count), portable_moved(count);
      const bool reached = set->encode_delta(codec, values.data(), residual.data(), count, delta.data(), moved.data());
      EXPECT_EQ(reached, kPortable.encode_delta(codec, values.data(), residual.data(), count, portable_delta.data(),
                                                portable_moved.data()));
      EXPECT_EQ(delta, portable_delta);
      EXPECT_TRUE(!reached || same_bits(moved, portable_moved));
      EXPECT_EQ(set->add_delta({codec, delta.data(), count}, residual.data(), moved.data()), reached);
      EXPECT_TRUE(!reached || same_bits(moved, portable_moved));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Codec, EverySet, testing::ValuesIn(cases()), [](const auto& param) {
  return std::string(param.param.set->name) + "_" + std::string(to_word(param.param.codec));
});

TEST(Codec, NotFiniteIsSeenInEveryPlace) {
  std::vector<float> values(37, std::numeric_limits<float>::max());
  EXPECT_TRUE(Encoded(values).finite());
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      std::vector<float> copy = values;
      copy[i] = -bad;
      EXPECT_FALSE(Encoded(copy).finite());
    }
  }
}

TEST(Codec, DeltasNeedScalesInRange) {
  const std::vector<float> target = golden_values(), base = golden_held();
  std::vector<float> moved(kCount);
  for (const CodecId codec : {CodecId::int8, CodecId::int4}) {
    std::vector<std::byte> body(encoded_bytes(codec, kCount));
    ASSERT_TRUE(encode_delta(codec, target, base, body, moved));
    ASSERT_TRUE(add_delta(codec, body, base, moved));
    EXPECT_FALSE(add_delta(codec, std::span(body).first(body.size() - 1), base, moved));
    for (int exponent = 0; exponent < 256; ++exponent) {
      body[2] = static_cast<std::byte>(exponent);
      EXPECT_EQ(add_delta(codec, body, base, moved), exponent == 0 || (exponent >= 27 && exponent <= 247)) << exponent;
    }
  }
}

TEST(Codec, WordsComeBack) {
  for (const CodecId codec : {CodecId::fp32, CodecId::bf16, CodecId::int8, CodecId::int4})
    EXPECT_EQ(from_word(to_word(codec)), codec);
  EXPECT_EQ(from_word("int2"), std::nullopt);
}

TEST(Codec, LargeBodiesShrinkAsPromised) {
  constexpr std::size_t kElements = std::size_t{1} << 20;
  EXPECT_EQ(encoded_bytes(CodecId::int8, kElements), kElements / 256 * 257);
  EXPECT_EQ(encoded_bytes(CodecId::int4, kElements), kElements / 64 * 33);
  EXPECT_EQ(encoded_bytes(CodecId::bf16, kElements), kElements * 2);
}

}  // namespace
}  // namespace motley::codec
