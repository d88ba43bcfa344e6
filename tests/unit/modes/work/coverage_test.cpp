#include "modes/work/coverage.h"

#include <gtest/gtest.h>

#include <vector>

namespace motley::modes {
namespace {

using Verdict = Coverage::BeginVerdict;

class CoverageTest : public testing::Test {
 protected:
  CoverageTest() { coverage.reset(64, 2); }
  Verdict begin(LeaseId lease, Interval range, double weight = -1) {
    return coverage.begin({.lease = lease,
                           .range = range,
                           .weight = weight < 0 ? static_cast<double>(range.count) : weight,
                           .loss_sum = 1});
  }
  std::vector<Interval> missing(std::vector<Interval> promised = {}) const {
    return coverage.tiles(coverage.missing(promised));
  }
  Coverage coverage;
};

TEST_F(CoverageTest, AChunkIsReadyWhenItTilesThePass) {
  EXPECT_EQ(begin(1, {0, 40}), Verdict::first);
  EXPECT_EQ(begin(2, {40, 24}), Verdict::first);
  EXPECT_TRUE(coverage.weight_known());
  EXPECT_EQ(coverage.weight(), 64);
  EXPECT_TRUE(coverage.deliver(2, 0));
  EXPECT_FALSE(coverage.ready(0));
  EXPECT_TRUE(coverage.deliver(1, 0));
  EXPECT_TRUE(coverage.ready(0));
  EXPECT_FALSE(coverage.ready(1));
  EXPECT_EQ(coverage.pieces(0)[0], (Coverage::Piece{{0, 40}, 1})) << "in order of positions, not of arrival";
  coverage.set_reduced(0);
  EXPECT_FALSE(coverage.ready(0)) << "once only";
  EXPECT_FALSE(coverage.complete());
}

TEST_F(CoverageTest, AChunkIsNotReadyBeforeTheWeightIsKnown) {
  begin(1, {0, 40});
  coverage.deliver(1, 0);
  EXPECT_FALSE(coverage.weight_known());
  EXPECT_EQ(missing(), (std::vector<Interval>{{0, 40}, {40, 24}}));
  EXPECT_TRUE(missing({{40, 24}, {0, 40}}).empty());
}

TEST_F(CoverageTest, ALostLeaseWithoutChunksLeavesNoTrace) {
  begin(1, {0, 40}, 17);
  coverage.drop(1);
  EXPECT_EQ(coverage.weight(), 0);
  EXPECT_EQ(begin(2, {0, 64}), Verdict::first);
  EXPECT_EQ(coverage.weight(), 64);
}

TEST_F(CoverageTest, DeliveredChunksOutliveTheirWorker) {
  begin(1, {0, 32});
  begin(2, {32, 32});
  coverage.deliver(1, 0);
  coverage.drop(1);
  EXPECT_EQ(missing({{32, 32}}), (std::vector<Interval>{{0, 32}}));
  EXPECT_EQ(begin(3, {0, 20}), Verdict::replacement);
  EXPECT_FALSE(coverage.deliver(3, 0)) << "covered already";
  EXPECT_TRUE(coverage.deliver(3, 1));
  EXPECT_EQ(coverage.weight(), 64) << "a replacement adds no weight";
  EXPECT_EQ(begin(4, {20, 12}), Verdict::replacement);
  EXPECT_TRUE(coverage.deliver(4, 1));
  EXPECT_TRUE(coverage.deliver(2, 1));
  EXPECT_TRUE(coverage.ready(1));
}

TEST_F(CoverageTest, ReplacementsMustAddUpToTheWeightDeclaredFirst) {
  begin(1, {0, 32}, 30);
  coverage.deliver(1, 0);
  coverage.drop(1);
  EXPECT_EQ(begin(2, {0, 32}, 31), Verdict::wrong_weight);
  EXPECT_EQ(begin(3, {0, 16}, 31), Verdict::wrong_weight);
  EXPECT_EQ(begin(4, {0, 16}, 20), Verdict::replacement);
  EXPECT_EQ(begin(5, {16, 16}, 11), Verdict::wrong_weight);
  EXPECT_EQ(begin(6, {16, 16}, 10), Verdict::replacement);
}

TEST_F(CoverageTest, RangesThatCrossABegunOneAreRefused) {
  begin(1, {16, 16});
  EXPECT_EQ(begin(2, {0, 17}), Verdict::overlap);
  EXPECT_EQ(begin(3, {31, 10}), Verdict::overlap);
  EXPECT_EQ(begin(4, {0, 64}), Verdict::overlap);
  EXPECT_EQ(begin(5, {0, 16}), Verdict::first);
}

TEST_F(CoverageTest, WithdrawingKeepsWhatIsSummed) {
  begin(1, {0, 64});
  coverage.deliver(1, 0);
  coverage.set_reduced(0);
  coverage.deliver(1, 1);
  coverage.withdraw(1);
  EXPECT_TRUE(coverage.accepted(1, 0));
  EXPECT_FALSE(coverage.accepted(1, 1));
  EXPECT_EQ(missing(), (std::vector<Interval>{{0, 64}}));
  EXPECT_EQ(begin(2, {0, 64}), Verdict::replacement);
  EXPECT_TRUE(coverage.deliver(2, 1));
  EXPECT_TRUE(coverage.ready(1));
}

TEST_F(CoverageTest, APromiseThatWouldBeRefusedIsNone) {
  begin(1, {0, 64});
  EXPECT_TRUE(missing({{0, 64}}).empty());
  begin(2, {0, 32});
  coverage.deliver(2, 0);
  // Chunk 0 takes the rest from nobody now; chunk 1 may still come from lease 1.
  EXPECT_EQ(missing({{0, 64}}), (std::vector<Interval>{{32, 32}}));
}

TEST_F(CoverageTest, KnowsWhatIsCoveredInEveryChunk) {
  begin(1, {0, 32});
  coverage.deliver(1, 0);
  EXPECT_FALSE(coverage.covered({0, 32}));
  coverage.deliver(1, 1);
  EXPECT_TRUE(coverage.covered({0, 32}));
  EXPECT_TRUE(coverage.covered({8, 8}));
  EXPECT_FALSE(coverage.covered({0, 33}));
}

}  // namespace
}  // namespace motley::modes
