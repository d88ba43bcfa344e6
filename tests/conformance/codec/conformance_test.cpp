// What every codec must do, and Encoded with any of them.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/philox.h"
#include "codec/codec.h"

namespace motley::codec {
namespace {

constexpr std::size_t kCount = 3 * 4096 + 192;

/// Elements that share a scale.
std::size_t block_of(CodecId codec) {
  switch (codec) {
    case CodecId::int8:
      return 256;
    case CodecId::int4:
      return 64;
    default:
      return 1;
  }
}

class EveryCodec : public testing::TestWithParam<CodecId> {
 protected:
  EveryCodec() {
    Philox random(3);
    for (std::size_t i = 0; i < kCount; ++i) {
      values.push_back(static_cast<float>(random.gaussian()));
      residual.push_back(static_cast<float>(random.gaussian() / 100));
    }
  }
  void encode() { codec::encode(GetParam(), values, residual, body, left); }
  [[nodiscard]] Encoded encoded() const { return *Encoded::make(GetParam(), body, kCount); }
  [[nodiscard]] std::vector<float> decoded() const {
    std::vector<float> result(kCount);
    encoded().decode(0, result);
    return result;
  }

  std::vector<float> values, residual, left = std::vector<float>(kCount);
  std::vector<std::byte> body = std::vector<std::byte>(encoded_bytes(GetParam(), kCount));
};

TEST_P(EveryCodec, StaysInItsBudget) {
  encode();
  EXPECT_TRUE(encoded().finite());
  const std::vector<float> found = decoded();
  const std::size_t block = block_of(GetParam());
  for (std::size_t first = 0; first < kCount; first += block) {
    double magnitude = 0;
    for (std::size_t i = first; i < std::min(kCount, first + block); ++i)
      magnitude = std::max(magnitude, std::abs(static_cast<double>(values[i] + residual[i])));
    for (std::size_t i = first; i < std::min(kCount, first + block); ++i)
      EXPECT_LE(std::abs(found[i] - (values[i] + residual[i])), error_bound(GetParam(), magnitude)) << i;
  }
}

TEST_P(EveryCodec, TheLargestMagnitudeIsThatOfTheBiggestElement) {
  values[kCount - 3] = -1e18F;
  encode();
  // Of a block it is what its scale allows: that is rounded up to 1.5 times as much, and int4 has a code of -8.
  EXPECT_GE(encoded().largest(), 0.99e18F);
  EXPECT_LE(encoded().largest(), 1.5F * 8 / 7 * 1.01e18F);
}

TEST_P(EveryCodec, LeavesExactlyWhatItDidNotSend) {
  encode();
  const std::vector<float> found = decoded();
  for (std::size_t i = 0; i < kCount; ++i) EXPECT_EQ(left[i], values[i] + residual[i] - found[i]) << i;
}

TEST_P(EveryCodec, AddsWhatItDecodes) {
  encode();
  std::vector<float> sum = residual;
  encoded().add_to(0, sum);
  const std::vector<float> found = decoded();
  for (std::size_t i = 0; i < kCount; ++i) EXPECT_EQ(sum[i], residual[i] + found[i]) << i;
}

TEST_P(EveryCodec, DecodesAnyStretch) {
  encode();
  const std::vector<float> whole = decoded();
  for (std::size_t first = 0; first < kCount; first += Encoded::kStride) {
    std::vector<float> part(std::min<std::size_t>(700, kCount - first));
    encoded().decode(first, part);
    EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(first))) << first;
  }
}

TEST_P(EveryCodec, ZerosStayZeros) {
  values.assign(kCount, 0);
  residual.assign(kCount, 0);
  encode();
  EXPECT_EQ(decoded(), values);
  EXPECT_EQ(left, values);
}

TEST_P(EveryCodec, SaysWhatIsNotFinite) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    for (const std::size_t at : {std::size_t{0}, std::size_t{255}, kCount - 1}) {
      std::vector<float> copy = values;
      copy[at] = bad;
      codec::encode(GetParam(), copy, residual, body, left);
      EXPECT_FALSE(encoded().finite()) << at;
      for (const float each : left) ASSERT_TRUE(std::isfinite(each));
    }
  }
}

TEST_P(EveryCodec, ALengthThatIsWrongIsRefused) {
  for (std::size_t length = 0; length < body.size(); ++length)
    ASSERT_FALSE(Encoded::make(GetParam(), std::span(body).first(length), kCount).has_value());
  body.push_back({});
  EXPECT_FALSE(Encoded::make(GetParam(), body, kCount).has_value());
}

INSTANTIATE_TEST_SUITE_P(Codec, EveryCodec, testing::Values(CodecId::fp32, CodecId::bf16, CodecId::int8, CodecId::int4),
                         [](const auto& param) { return std::string(to_word(param.param)); });

}  // namespace
}  // namespace motley::codec
