#include "engine/error_feedback.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "codec/codec.h"

namespace motley::engine {
namespace {

TEST(ErrorFeedback, KeepsWhatIsLeftOut) {
  constexpr auto kCodec = codec::CodecId::int4;
  std::vector<float> gradient(4096);
  for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = 1.0F / static_cast<float>(1 + i);
  wire::Grant grant;
  grant.lease = 1;
  grant.codec = static_cast<std::uint32_t>(kCodec);
  grant.feedback = true;
  ErrorFeedback feedback;
  feedback.admitted(1, 1);
  const SharedBytes body = feedback.encode(grant, 0, gradient);
  std::vector<float> sent(gradient.size());
  const auto encoded = codec::Encoded::make(kCodec, body.bytes(), gradient.size());
  ASSERT_TRUE(encoded);
  encoded->decode(0, sent);
  feedback.taken({.pass = 0, .lease = 1, .discarded = {}});
  ASSERT_EQ(feedback.residual(0).size(), gradient.size());
  for (std::size_t i = 0; i < gradient.size(); ++i) EXPECT_EQ(feedback.residual(0)[i], gradient[i] - sent[i]) << i;
  EXPECT_GT(feedback.residual_ratio(), 0);
}

class FeedbackOfParts : public testing::TestWithParam<codec::CodecId> {};

// As a sum of contributions goes on.
TEST_P(FeedbackOfParts, AddUpToThatOfTheWhole) {
  constexpr std::size_t kElements = 1000;
  wire::Grant grant;
  grant.codec = static_cast<std::uint32_t>(GetParam());
  grant.feedback = true;
  ErrorFeedback whole, parts;
  for (std::uint64_t lease = 1; lease <= 3; ++lease) {
    grant.lease = lease;
    std::vector<float> gradient(kElements);
    for (std::size_t i = 0; i < kElements; ++i) gradient[i] = static_cast<float>((i * 37 + lease * 11) % 101) / 7;
    const SharedBytes expected = whole.encode(grant, 0, gradient);
    std::vector<std::byte> found(expected.size());
    for (std::size_t first = 0; first < kElements; first += 2 * codec::Encoded::kStride) {
      const std::size_t count = std::min(2 * codec::Encoded::kStride, kElements - first);
      const SharedBytes part = parts.encode(grant, 0, kElements, first, std::span(gradient).subspan(first, count));
      codec::insert(GetParam(), part.bytes(), first, count, found, kElements);
    }
    EXPECT_TRUE(std::ranges::equal(found, expected.bytes()));
    EXPECT_NEAR(whole.residual_ratio(), parts.residual_ratio(), 1e-6);
    for (ErrorFeedback* each : {&whole, &parts}) each->taken({.pass = 0, .lease = lease, .discarded = {}});
    EXPECT_TRUE(std::ranges::equal(whole.residual(0), parts.residual(0)));
  }
}

std::string name_of(const testing::TestParamInfo<codec::CodecId>& codec) {
  return std::string(codec::to_word(codec.param));
}

INSTANTIATE_TEST_SUITE_P(Codecs, FeedbackOfParts,
                         testing::Values(codec::CodecId::bf16, codec::CodecId::int8, codec::CodecId::int4), name_of);

}  // namespace
}  // namespace motley::engine
