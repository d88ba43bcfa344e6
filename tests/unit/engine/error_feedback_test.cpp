#include "engine/error_feedback.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "codec/codec.h"
#include "modes/work/pass.h"

namespace motley::engine {
namespace {

class ErrorFeedbackTest : public testing::TestWithParam<codec::CodecId> {};

TEST_P(ErrorFeedbackTest, WhatTop64LeavesOutIsKeptInPart) {
  std::vector<float> gradient(4096);
  for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = 1.0F / static_cast<float>(1 + i);
  wire::Grant grant;
  grant.lease = 1;
  grant.codec = static_cast<std::uint32_t>(GetParam());
  grant.feedback = true;
  ErrorFeedback feedback;
  feedback.admitted(1, 1);
  const SharedBytes body = feedback.encode(grant, 0, gradient);
  std::vector<float> sent(gradient.size());
  const auto encoded = codec::Encoded::make(GetParam(), body.bytes(), gradient.size());
  ASSERT_TRUE(encoded);
  encoded->decode(0, sent);
  feedback.taken({.pass = 0, .lease = 1, .discarded = {}});
  const float kept = GetParam() == codec::CodecId::top64 ? 0.95F : 1.0F;
  ASSERT_EQ(feedback.residual(0).size(), gradient.size());
  for (std::size_t i = 0; i < gradient.size(); ++i)
    EXPECT_EQ(feedback.residual(0)[i], kept * (gradient[i] - sent[i])) << i;
  EXPECT_GT(feedback.residual_ratio(), 0);
}

// What counted, and what is left, are all that was to be sent.
TEST(ErrorFeedback, TwoUnderWayLeaveWhatTheyOweWhicheverOfThemCounts) {
  constexpr auto kCodec = codec::CodecId::int4;
  constexpr std::size_t kElements = 4096;
  const auto gradient = [](std::uint64_t lease) {
    std::vector<float> values(kElements);
    for (std::size_t i = 0; i < kElements; ++i)
      values[i] = 1.0F / static_cast<float>(1 + (i * (lease + 6)) % kElements);
    return values;
  };
  for (const int counts : {0, 1, 2, 3}) {
    for (const int order : {0, 1, 2}) {  // first the older one, first the younger one, the older one never
      if (order == 2 && (counts & 1) != 0) continue;
      ErrorFeedback feedback;
      feedback.admitted(1, 1);
      std::vector<double> owed(kElements);
      const auto send = [&](std::uint64_t lease) {
        wire::Grant grant;
        grant.lease = lease;
        grant.pass = modes::PassId{.kind = PassKind::train, .number = lease}.pack();
        grant.version = lease - 1;
        grant.codec = static_cast<std::uint32_t>(kCodec);
        grant.feedback = true;
        std::vector<float> sent(kElements);
        const SharedBytes body = feedback.encode(grant, 0, gradient(lease));
        codec::Encoded::make(kCodec, body.bytes(), kElements)->decode(0, sent);
        return sent;
      };
      const auto taken = [&](std::uint64_t lease, const std::vector<float>& sent, bool counted) {
        feedback.taken({.pass = 0, .lease = lease, .discarded = std::vector<std::uint8_t>(counted ? 0 : 1, 1)});
        const std::vector<float> wanted = gradient(lease);
        for (std::size_t i = 0; counted && i < kElements; ++i) owed[i] += double{wanted[i]} - double{sent[i]};
      };
      taken(1, send(1), true);
      const std::vector<float> first = send(2), second = send(3);
      if (order == 0) taken(2, first, (counts & 1) != 0);
      taken(3, second, (counts & 2) != 0);
      if (order == 1) taken(2, first, (counts & 1) != 0);
      for (std::size_t i = 0; i < kElements; ++i) ASSERT_NEAR(feedback.residual(0)[i], owed[i], 1e-6) << i;
      taken(4, send(4), true);
      for (std::size_t i = 0; i < kElements; ++i) ASSERT_NEAR(feedback.residual(0)[i], owed[i], 1e-6) << i;
    }
  }
}

TEST_P(ErrorFeedbackTest, WhatWasSentOverAnotherChannelCountsIfThatIsSaidBeforeTheNext) {
  std::vector<float> gradient(4096);
  for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = 1.0F / static_cast<float>(1 + i);
  wire::Grant grant;
  grant.codec = static_cast<std::uint32_t>(GetParam());
  grant.feedback = true;
  ErrorFeedback feedback;
  feedback.admitted(1, 1);
  for (grant.lease = 1; grant.lease < 3; ++grant.lease) {
    grant.pass = modes::PassId{.kind = PassKind::train, .number = grant.lease}.pack();
    grant.version = grant.lease - 1;
    (void)feedback.encode(grant, 0, gradient);
  }
  feedback.connected();
  feedback.taken({.pass = 0, .lease = 1, .discarded = {}});
  const std::vector<float> left(feedback.residual(0).begin(), feedback.residual(0).end());
  (void)feedback.encode(grant, 0, gradient);
  feedback.taken({.pass = 0, .lease = 2, .discarded = {}});
  EXPECT_EQ(std::vector<float>(feedback.residual(0).begin(), feedback.residual(0).end()), left);
}

INSTANTIATE_TEST_SUITE_P(Codecs, ErrorFeedbackTest, testing::Values(codec::CodecId::int4, codec::CodecId::top64),
                         [](const auto& codec) { return std::string(codec::to_word(codec.param)); });

}  // namespace
}  // namespace motley::engine
