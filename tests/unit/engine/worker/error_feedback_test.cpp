#include "engine/worker/error_feedback.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace motley::engine
