#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "codec/codec.h"
#include "engine/worker/error_feedback.h"

namespace motley::engine {
namespace {

constexpr std::size_t kElements = 320;
constexpr ChunkId kChunks = 3;

std::vector<float> any_gradient() {
  auto values = *rc::gen::container<std::vector<float>>(
      kElements, rc::gen::map(rc::gen::inRange(-100000, 100000), [](int n) { return static_cast<float>(n) / 256; }));
  return values;
}

/// What became of a contribution.
enum class End { counted, discarded, lost };

struct Chunk {
  std::vector<double> wanted = std::vector<double>(kElements);   // sum of the gradients that counted
  std::vector<double> decoded = std::vector<double>(kElements);  // sum of what was made of them
};

void count(Chunk& chunk, const std::vector<float>& gradient, const wire::Grant& lease, const SharedBytes& body) {
  const auto codec = static_cast<codec::CodecId>(lease.codec);
  std::vector<float> found(kElements);
  codec::Encoded::make(codec, body.bytes(), kElements)->decode(0, found);
  for (std::size_t i = 0; i < kElements; ++i) {
    chunk.wanted[i] += gradient[i];
    chunk.decoded[i] += found[i];
  }
}

// Whatever becomes of the chunks: what counted and what is kept are together the gradients that counted.
RC_GTEST_PROP(ErrorFeedback, NothingIsLostAndNothingComesTwice, ()) {
  ErrorFeedback feedback;
  feedback.admitted(1, 1);
  std::vector<Chunk> chunks(kChunks);
  const int leases = *rc::gen::inRange(1, 12);
  for (int number = 1; number <= leases; ++number) {
    wire::Grant lease;
    lease.lease = static_cast<std::uint64_t>(number);
    lease.codec = *rc::gen::inRange(1U, 4U);
    lease.feedback = true;
    wire::Taken taken{0, lease.lease, std::vector<std::uint8_t>(1)};
    const bool lost = *rc::gen::inRange(0, 4) == 0;
    for (ChunkId chunk = 0; chunk < kChunks; ++chunk) {
      if (*rc::gen::inRange(0, 8) == 0) continue;  // cancelled before it was sent
      const std::vector<float> gradient = any_gradient();
      const SharedBytes body = feedback.encode(lease, chunk, gradient);
      const bool discarded = *rc::gen::arbitrary<bool>();
      if (discarded) taken.discarded[0] = static_cast<std::uint8_t>(taken.discarded[0] | 1U << chunk);
      if (!lost && !discarded) count(chunks[chunk], gradient, lease, body);
    }
    for (int copies = *rc::gen::inRange(1, 3); !lost && copies > 0; --copies) feedback.taken(taken);
  }
  for (ChunkId chunk = 0; chunk < kChunks; ++chunk) {
    const auto residual = feedback.residual(chunk);
    for (std::size_t i = 0; i < kElements; ++i) {
      const double kept = residual.empty() ? 0 : static_cast<double>(residual[i]);
      RC_ASSERT(std::abs(chunks[chunk].wanted[i] - chunks[chunk].decoded[i] - kept) < 1e-3);
    }
  }
}

RC_GTEST_PROP(ErrorFeedback, WhatIsLeftStaysInTheBudget, ()) {
  ErrorFeedback feedback;
  wire::Grant lease;
  lease.codec = *rc::gen::inRange(1U, 4U);
  lease.feedback = true;
  const auto codec = static_cast<codec::CodecId>(lease.codec);
  // A residual of share b of the largest gradient G: at most b · (G + residual), so b / (1 - b) · G in the end.
  const double share = codec::error_bound(codec, 1);
  double largest = 0;
  for (int number = 1; number <= 20; ++number) {
    lease.lease = static_cast<std::uint64_t>(number);
    const std::vector<float> gradient = any_gradient();
    for (const float value : gradient) largest = std::max(largest, std::abs(static_cast<double>(value)));
    feedback.encode(lease, 0, gradient);
    feedback.taken({0, lease.lease, {}});
    for (const float kept : feedback.residual(0))
      RC_ASSERT(std::abs(static_cast<double>(kept)) <= share / (1 - share) * largest * 1.001);
  }
}

RC_GTEST_PROP(ErrorFeedback, ReissuedLeasesTouchNothing, ()) {
  ErrorFeedback feedback;
  wire::Grant lease;
  lease.lease = 1;
  lease.codec = 2;
  lease.feedback = true;
  const std::vector<float> gradient = any_gradient();
  feedback.encode(lease, 0, gradient);
  feedback.taken({0, 1, {}});
  const std::vector<float> before(feedback.residual(0).begin(), feedback.residual(0).end());
  const wire::Grant again{.lease = 2, .codec = 1};
  const SharedBytes body = feedback.encode(again, 0, gradient);
  feedback.taken({0, 2, {}});
  RC_ASSERT(std::ranges::equal(before, feedback.residual(0)));
  std::vector<std::byte> stateless(codec::encoded_bytes(codec::CodecId::bf16, kElements));
  codec::encode(codec::CodecId::bf16, gradient, {}, stateless, {});
  RC_ASSERT(std::ranges::equal(stateless, body.bytes()));
}

TEST(ErrorFeedback, ANewIncarnationStartsAtZero) {
  ErrorFeedback feedback;
  feedback.admitted(1, 1);
  const wire::Grant lease{.lease = 1, .codec = 3, .feedback = true};
  std::vector<float> gradient(kElements, 1.0F);
  gradient[0] = 1.3F;
  feedback.encode(lease, 0, gradient);
  feedback.taken({0, 1, {}});
  feedback.admitted(1, 1);
  EXPECT_FALSE(feedback.residual(0).empty()) << "a new session of the same coordinator";
  feedback.admitted(1, 2);
  EXPECT_TRUE(feedback.residual(0).empty());
  feedback.encode(lease, 0, gradient);
  feedback.taken({0, 1, {}});
  feedback.admitted(2, 2);
  EXPECT_TRUE(feedback.residual(0).empty());
}

}  // namespace
}  // namespace motley::engine
