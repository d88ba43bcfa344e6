// Norms of contributions: what is compared, and what is left out.

#include "engine/head/step_norms.h"

#include <gtest/gtest.h>

#include "fixture.h"
#include "modes/work/coverage.h"

namespace motley::engine {
namespace {

constexpr double kWeight = 2;  // of a position

class StepNormsTest : public testing::Test {
 protected:
  StepNormsTest() { coverage.reset(16, 2); }

  void contribute(modes::LeaseId lease, modes::Interval range) {
    modes::Contribution contribution;
    contribution.lease = lease;
    contribution.range = range;
    contribution.weight = kWeight * static_cast<double>(range.count);
    coverage.begin(contribution);
  }
  /// Reduces a chunk where each piece's sum has this squared norm.
  bool reduce(ChunkId chunk, double square, double mean_square) {
    std::vector<StepNorms::Part> parts;
    for (const auto& piece : coverage.pieces(chunk)) parts.push_back({piece.range, coverage.find(piece.lease)->weight});
    const auto squares = norms.of(parts);
    for (double& each : squares) each += square;
    norms.add_mean(mean_square);
    return !squares.empty();
  }

  modes::Coverage coverage;
  StepNorms norms;
};

TEST_F(StepNormsTest, AddsUpOverTheChunks) {
  contribute(1, {0, 12});
  contribute(2, {12, 4});
  for (const ChunkId chunk : {0U, 1U}) {
    coverage.deliver(2, chunk);
    coverage.deliver(1, chunk);
    EXPECT_TRUE(reduce(chunk, 288, 0.25));
  }
  const auto estimate = norms.close(16);
  ASSERT_TRUE(estimate);
  // |g_1|² = 576 / 24² = 1, |g_2|² = 576 / 8² = 9, and |g|² = 0.5.
  EXPECT_DOUBLE_EQ(estimate->variance, 16 * (0.75 * 1 + 0.25 * 9 - 0.5));
  EXPECT_DOUBLE_EQ(estimate->signal, 2 * 0.5 - 3);
  EXPECT_FALSE(norms.close(16)) << "the next step starts empty";
}

TEST_F(StepNormsTest, LeavesOutAStepCutInDifferentWays) {
  contribute(1, {0, 8});
  contribute(2, {8, 8});
  for (const modes::LeaseId lease : {1U, 2U}) coverage.deliver(lease, 0);
  EXPECT_TRUE(reduce(0, 1, 1));
  // The second worker died before it sent the other chunk; two others did a half each.
  contribute(3, {8, 4});
  contribute(4, {12, 4});
  for (const modes::LeaseId lease : {1U, 3U, 4U}) coverage.deliver(lease, 1);
  EXPECT_FALSE(reduce(1, 1, 1));
  EXPECT_FALSE(norms.close(16));
}

TEST_F(StepNormsTest, TakesAReplacementOfTheSameRange) {
  contribute(1, {0, 8});
  contribute(2, {8, 8});
  for (const modes::LeaseId lease : {1U, 2U}) coverage.deliver(lease, 0);
  EXPECT_TRUE(reduce(0, 1, 0));
  contribute(3, {8, 8});
  for (const modes::LeaseId lease : {1U, 3U}) coverage.deliver(lease, 1);
  EXPECT_TRUE(reduce(1, 1, 0));
  EXPECT_TRUE(norms.close(16));
}

TEST_F(StepNormsTest, HasNothingToCompareInOnePiece) {
  contribute(1, {0, 16});
  coverage.deliver(1, 0);
  EXPECT_FALSE(reduce(0, 1, 1));
  EXPECT_FALSE(norms.close(16));
}

// Two sums of norm 4 and weight 16 each: the mean is as long as their directions are alike.
TEST_F(StepNormsTest, SaysHowAlikeTwoContributionsAre) {
  struct Case {
    double mean_square, cosine;
  };
  for (const Case& one : {Case{64.0 / 1024, 1}, Case{32.0 / 1024, 0}, Case{0, -1}, Case{48.0 / 1024, 0.5}}) {
    coverage.reset(16, 2);
    norms.drop();
    contribute(1, {0, 8});
    contribute(2, {8, 8});
    for (const modes::LeaseId lease : {1U, 2U}) coverage.deliver(lease, 0);
    EXPECT_TRUE(reduce(0, 16, one.mean_square));
    ASSERT_TRUE(norms.cosine());
    EXPECT_DOUBLE_EQ(*norms.cosine(), one.cosine);
  }
}

TEST_F(StepNormsTest, OneContributionIsLikeNoOther) {
  EXPECT_FALSE(norms.cosine());
  contribute(1, {0, 16});
  coverage.deliver(1, 0);
  EXPECT_FALSE(reduce(0, 1, 1));
  EXPECT_FALSE(norms.cosine());
}

TEST_F(CoordinatorTest, NoiseIsKnownOnlyOfSharedSteps) {
  make();
  join(1);
  run();
  ASSERT_EQ(output.steps.size(), 4U);
  EXPECT_EQ(output.steps.back().noise.records, 0U);
}

TEST_F(CoordinatorTest, ContributionsOfTwoWorkersAreCompared) {
  options.min_workers = 2;
  options.shares = {3, 1};
  options.steps = 60;
  make();
  join(1);
  join(2);
  run();
  ASSERT_EQ(output.steps.size(), 60U);
  EXPECT_EQ(output.steps[0].noise.records, 1U);
  EXPECT_FALSE(output.steps[0].noise.scale);
  EXPECT_EQ(output.steps.back().noise.records, 60U);
  EXPECT_TRUE(output.steps.back().noise.scale);
  EXPECT_TRUE(output.steps.back().noise.useful_batch);
}

}  // namespace
}  // namespace motley::engine
