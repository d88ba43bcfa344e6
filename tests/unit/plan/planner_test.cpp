#include "plan/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley::plan {
namespace {

using testing::ElementsAre;
using Counts = std::vector<std::uint64_t>;

Candidate speed(double samples_per_second) { return {.time = Affine{0, 1 / samples_per_second}}; }
Candidate affine(double fixed, double per_sample, bool remote = false) {
  return {.time = Affine{fixed, per_sample}, .remote = remote};
}
const Candidate kUnmeasured{};

Counts counts(std::uint64_t total, std::uint64_t grain, const std::vector<Candidate>& candidates,
              const Counts& previous = {}) {
  return make_plan({.total = total, .grain = grain}, candidates, previous).counts;
}

TEST(Planner, WithoutFixedCostsSharesAreProportional) {
  EXPECT_THAT(counts(1024, 32, {speed(4), speed(3), speed(1)}), ElementsAre(512, 384, 128));
  EXPECT_THAT(counts(1000, 32, {speed(1), speed(1)}), ElementsAre(512, 488));
  EXPECT_THAT(counts(7, 32, {speed(1)}), ElementsAre(7));
  EXPECT_THAT(counts(0, 32, {speed(1), speed(2)}), ElementsAre(0, 0));
}

TEST(Planner, AFixedCostIsPaidBySmallerShares) {
  // 0.1 s of fixed cost are worth ten samples of that worker: 105 and 95 samples both take 1.05 s.
  EXPECT_THAT(counts(200, 1, {affine(0, 0.01), affine(0.1, 0.01)}), ElementsAre(105, 95));
}

TEST(Planner, WhoWouldLengthenThePassGetsNothing) {
  EXPECT_THAT(counts(256, 32, {speed(1000), speed(5)}), ElementsAre(256, 0));
  EXPECT_THAT(counts(256, 32, {affine(0.001, 0.001), affine(0.3, 0.0001)}), ElementsAre(256, 0));
  // A fraction of 0.55 would round to one, and the pass would take 1.0 instead of 0.6.
  EXPECT_THAT(counts(6, 1, {speed(10), speed(1)}), ElementsAre(6, 0));
}

TEST(Planner, TheCoordinatorsLinkIsAFloor) {
  const std::vector<Candidate> candidates{affine(0, 0.001), affine(0, 0.001, true), affine(0, 0.001, true),
                                          affine(0, 0.001, true)};
  const auto with = [&](double link) {
    return make_plan({.total = 400, .grain = 1, .link_seconds = link}, candidates);
  };
  EXPECT_THAT(with(0.02).counts, ElementsAre(100, 100, 100, 100));
  // Three gradients would take 0.24 s; with two, computing and sending end after 0.16 s.
  const Plan two = with(0.08);
  EXPECT_EQ(std::ranges::count(two.counts, 0U), 1);
  EXPECT_NEAR(two.seconds, 0.16, 1e-9);
  EXPECT_THAT(with(1).counts, ElementsAre(400, 0, 0, 0));
}

TEST(Planner, WhoSharesTheCoordinatorsLinkWaitsForTheOthers) {
  std::vector<Candidate> candidates{affine(0, 0.001), affine(0, 0.001, true), affine(0, 0.001, true)};
  const auto with = [&](double wait) {
    for (Candidate& each : candidates) each.wait = wait;
    return make_plan({.total = 300, .grain = 1}, candidates);
  };
  EXPECT_THAT(with(0).counts, ElementsAre(100, 100, 100));
  EXPECT_THAT(with(0.03).counts, ElementsAre(120, 90, 90));
  EXPECT_EQ(std::ranges::count(with(0.1).counts, 0U), 1) << "0.167 s with both, 0.15 s with one";
  EXPECT_NEAR(with(0.1).seconds, 0.15, 1e-9);
}

TEST(Planner, AnUnmeasuredWorkerGetsASmallPart) {
  EXPECT_THAT(counts(450, 1, {speed(50), kUnmeasured, speed(50)}), ElementsAre(200, 50, 200));
  EXPECT_THAT(counts(300, 1, {kUnmeasured, kUnmeasured, kUnmeasured}), ElementsAre(100, 100, 100));
  // At once, however little it would gain.
  EXPECT_THAT(counts(1000, 1, {speed(50), kUnmeasured}, {1000, 0}), ElementsAre(800, 200));
}

TEST(Planner, NonsenseCountsAsUnmeasured) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(counts(90, 1, {affine(nan, 1), affine(0, -1), affine(0, 0)}), ElementsAre(30, 30, 30));
}

TEST(Planner, SharesStayForSmallGains) {
  EXPECT_THAT(counts(1000, 1, {speed(51), speed(50)}, {500, 500}), ElementsAre(500, 500));
  EXPECT_THAT(counts(1000, 1, {speed(60), speed(40)}, {500, 500}), ElementsAre(600, 400));
}

TEST(Planner, IgnoresPreviousSharesThatDoNotFit) {
  const std::vector<Candidate> equal{speed(50), speed(50)};
  EXPECT_THAT(counts(1000, 1, equal, {500, 499}), ElementsAre(500, 500));
  EXPECT_THAT(counts(1000, 1, equal, {501, 500}), ElementsAre(500, 500));
  EXPECT_THAT(counts(1000, 1, equal, {500, 499, 1}), ElementsAre(500, 500));
  EXPECT_THAT(counts(1024, 32, equal, {511, 513}), ElementsAre(512, 512));
  EXPECT_THAT(counts(1000, 1, equal, {~std::uint64_t{0}, 1001}), ElementsAre(500, 500));
}

}  // namespace
}  // namespace motley::plan
