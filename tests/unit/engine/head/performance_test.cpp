// That what is measured reaches the decisions; how each of them is made has its tests beside the estimators of plan/.

#include "engine/head/performance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "compute/pass_sizes.h"

namespace motley::engine {
namespace {

using Workers = std::vector<fleet::WorkerId>;

Duration duration_of(double seconds) { return Duration(static_cast<std::int64_t>(1e9 * seconds)); }

constexpr std::uint64_t kBatch = 3072;
constexpr double kPerSample = 0.00012;
constexpr std::uint64_t kBytes = 1'000'000;

// One worker in the coordinator's process, three behind its link, all alike.
class MeasuredPerformanceTest : public testing::Test {
 protected:
  MeasuredPerformanceTest() {
    for (fleet::WorkerId worker = 1; worker <= 4; ++worker) {
      performance_.connected(worker, worker > 1);
      while (const std::uint64_t samples = performance_.calibration(worker))
        performance_.calibrated(worker, samples, kPerSample * static_cast<double>(samples));
    }
  }
  static CoordinatorOptions options() {
    CoordinatorOptions options;
    options.global_batch = kBatch;
    return options;
  }
  /// Passes in which the contribution of each remote worker takes so many seconds, all at the same time.
  void passes(int count, const Workers& workers, double sends) {
    std::vector<std::uint64_t> counts(workers.size());
    for (int i = 0; i < count; ++i) {
      performance_.split(PassKind::train, kBatch, workers, false, counts);
      last_ = 0;
      for (std::size_t at = 0; at < workers.size(); ++at) {
        if (counts[at] == 0) continue;
        const fleet::WorkerId worker = workers[at];
        const double computes = kPerSample * static_cast<double>(counts[at]);
        if (const auto before = sent_.find(worker); before != sent_.end())
          performance_.sent(worker, before->second.lease, {kBytes, before->second.seconds});
        performance_.computed(PassKind::train, worker, ++lease_, counts[at], computes);
        const double end = worker == 1 ? computes : computes + sends;
        performance_.elapsed(PassKind::train, worker, lease_, counts[at], duration_of(end));
        if (worker > 1) sent_[worker] = {lease_, sends};
        last_ = std::max(last_, end);
      }
      performance_.closed(duration_of(last_));
    }
  }

  MeasuredPerformance performance_{options(), {kBytes, kBytes, kBytes, kBytes}};
  struct Sent {
    modes::LeaseId lease;
    double seconds;
  };
  std::map<fleet::WorkerId, Sent> sent_;
  modes::LeaseId lease_ = 0;
  double last_ = 0;
};

TEST(MeasuredPerformanceOfRounds, ADeviceIsMeasuredByTheSamplesOfAStepAndSharesAreWholeInEachStep) {
  CoordinatorOptions rounds;
  rounds.local_steps = 100;
  rounds.local_batch = 32;
  rounds.global_batch = rounds.local_steps * rounds.local_batch;
  MeasuredPerformance performance(rounds);
  const Workers workers{1, 2, 3, 4};
  const std::vector<double> speeds{19.3, 9.6, 3.5, 2.1};  // to the nearest hundred: 1800, 900, 300, 200
  for (const fleet::WorkerId worker : workers) {
    performance.connected(worker, worker > 1);
    EXPECT_EQ(performance.calibration(worker), 2U);
    while (const std::uint64_t samples = performance.calibration(worker))
      performance.calibrated(worker, samples, static_cast<double>(samples) / speeds[worker - 1]);
  }
  std::vector<std::uint64_t> counts(workers.size());
  performance.split(PassKind::train, rounds.global_batch, workers, false, counts);
  EXPECT_EQ(counts, (std::vector<std::uint64_t>{1800, 900, 300, 200}));
  performance.split(PassKind::train, rounds.local_batch, workers, false, counts);  // the last of an epoch: one step
  EXPECT_EQ(counts, (std::vector<std::uint64_t>{18, 9, 3, 2}));
}

TEST_F(MeasuredPerformanceTest, WhoWouldLengthenTheStepBecauseOfTheSharedLinkIsLeftOutForAWhile) {
  passes(10, {1, 4}, 0.05);
  passes(10, {1, 2}, 0.05);
  EXPECT_TRUE(performance_.judge(kBatch, Workers{1, 2}, 4).pays) << "nothing says that the two share a link";
  passes(10, {1, 2, 3}, 0.1);  // together they have what one had
  const modes::PerformanceModel::Verdict fourth = performance_.judge(kBatch, Workers{1, 2, 3}, 4);
  EXPECT_FALSE(fourth.pays);
  EXPECT_NEAR(seconds(fourth.with), (kBatch * kPerSample + 3 * 0.15) / 4, 0.005);
  EXPECT_NEAR(seconds(fourth.without), (kBatch * kPerSample + 2 * 0.1) / 3, 0.005);
  const auto planned = performance_.forecast(kBatch, Workers{1, 2, 3}, Workers{4});
  ASSERT_TRUE(planned);
  EXPECT_NEAR(planned->step.link_seconds, 0.1, 0.01);
  EXPECT_GE(planned->workers[3].least_step_seconds, planned->step.seconds);
  const std::uint64_t samples = performance_.trial(4);
  for (int i = 0; i < 40; ++i) performance_.calibrated(4, samples, kPerSample * static_cast<double>(samples));
  EXPECT_TRUE(performance_.judge(kBatch, Workers{1, 2, 3}, 4).pays) << "it is tried again in the end";
}

TEST(MeasuredPerformanceGuess, AFirstLeaseMayTakeAsLongAsTheFirstVersionTook) {
  CoordinatorOptions options;
  options.shares = {1, 1, 1};
  MeasuredPerformance performance(options);
  for (fleet::WorkerId worker = 1; worker <= 3; ++worker) performance.connected(worker, true);
  const auto allowed = [&](fleet::WorkerId worker) {
    return seconds(performance.allowance(PassKind::train, worker, 8));
  };
  EXPECT_TRUE(performance.guesses(PassKind::train, 1));
  EXPECT_DOUBLE_EQ(allowed(1), 60) << "nothing is known of it";
  performance.reached(1, duration_of(100));
  EXPECT_DOUBLE_EQ(allowed(1), 260);
  performance.reached(2, duration_of(1e6));
  EXPECT_DOUBLE_EQ(allowed(2), 660) << "its own word, up to a bound";
  performance.reached(3, duration_of(900));
  EXPECT_DOUBLE_EQ(allowed(3), 60 + 2 * 900);
  EXPECT_DOUBLE_EQ(allowed(2), 60 + 2 * 1800) << "twice what another one says";
}

TEST_F(MeasuredPerformanceTest, StepsTellWhatRoundsWouldTake) {
  passes(10, {1, 2}, 0.05);
  const std::uint64_t local_steps = 7;
  const auto planned = performance_.forecast(local_steps * kBatch, Workers{1, 2}, {}, local_steps);
  ASSERT_TRUE(planned);
  EXPECT_EQ(planned->workers[0].samples % local_steps, 0U) << "as many in each of its steps";
  EXPECT_EQ(planned->workers[0].samples + planned->workers[1].samples, local_steps * kBatch);
  EXPECT_NEAR(planned->step.seconds, local_steps * kBatch * kPerSample / 2, 0.05);
}

TEST_F(MeasuredPerformanceTest, AGainInDoubtIsComparedWithStepsAlone) {
  passes(40, {1, 2}, 0.25);
  EXPECT_TRUE(performance_.compare(kBatch / 2, 1).pays) << "of another batch";
  EXPECT_EQ(performance_.compare(kBatch, 1).without, Duration{}) << "nothing is known to compare with";
  EXPECT_FALSE(performance_.compare(kBatch, 1).pays);
  const double together = last_;
  for (int i = 0; i < 10; ++i) performance_.alone(1, kBatch, 0.9 * together, 0.98 * together);
  EXPECT_TRUE(performance_.compare(kBatch, 1).pays) << "no pass since";
  EXPECT_TRUE(performance_.resolve(kBatch).pays) << "that may be chance";
  passes(10, {1, 2}, 0.25);
  EXPECT_TRUE(performance_.compare(kBatch, 1).pays) << "too few";
  passes(14, {1, 2}, 0.25);
  EXPECT_NEAR(seconds(performance_.compare(kBatch, 1).without), 0.98 * together, 0.01 * together);
}

// A head that computes one half and a worker that computes the other, where nothing is seen of the wire: what tells are
// the processors.
TEST(MeasuredPerformanceCodec, FollowsWhatTheProcessorsOfBothEndsHaveToDo) {
  for (const bool worker_pays : {true, false}) {
    CoordinatorOptions options;
    options.global_batch = kBatch;
    options.gradients.reset();
    const plan::EndCost cost{.sent = 50e-9, .received = 50e-9};  // 50 ms a contribution in fp32
    if (!worker_pays) options.head_cost = cost;
    MeasuredPerformance performance(options, {1e6, 0.5e6, 0.25e6, 0.13e6});
    const Workers workers{1, 2};
    for (const fleet::WorkerId worker : workers) {
      performance.connected(worker, worker == 2);
      while (const std::uint64_t samples = performance.calibration(worker))
        performance.calibrated(worker, samples, kPerSample * static_cast<double>(samples));
    }
    std::vector<std::uint64_t> counts(workers.size());
    const auto passes = [&](int count) {
      for (std::uint64_t lease = 1; count > 0; --count) {
        performance.split(PassKind::train, kBatch, workers, false, counts);
        for (std::size_t at = 0; at < workers.size(); ++at) {
          const double computes = kPerSample * static_cast<double>(counts[at]);
          performance.computed(PassKind::train, workers[at], ++lease, counts[at], computes);
          performance.elapsed(PassKind::train, workers[at], lease, counts[at], duration_of(computes));
        }
        performance.weigh_codec(2);
      }
    };
    passes(8);
    EXPECT_EQ(performance.codec(2), worker_pays ? codec::CodecId::fp32 : codec::CodecId::int4)
        << "nobody told of the worker";
    if (!worker_pays) continue;
    performance.costs(2, cost);
    passes(8);
    EXPECT_EQ(performance.codec(2), codec::CodecId::int4);
  }
}

// The head takes over what was lost, so that the step takes as long as alone.
TEST_F(MeasuredPerformanceTest, AStepInWhichAShareWasLostSaysNothingOfWhatHoldsUpEverybody) {
  const Workers workers{1, 2};
  passes(2, workers, 0.05);
  const auto predicted = [&] { return performance_.forecast(kBatch, workers, {}).value().step.seconds; };
  const double before = predicted();
  std::vector<std::uint64_t> counts(workers.size());
  performance_.split(PassKind::train, kBatch, workers, false, counts);
  std::vector<std::uint64_t> left(1);
  performance_.split(PassKind::train, counts[1], Workers{1}, true, left);
  performance_.closed(duration_of(kPerSample * kBatch));
  EXPECT_NEAR(predicted(), before, 0.05 * before);
}

TEST_F(MeasuredPerformanceTest, SharesOfADeviceWithTwoSizesOfPassAreWholePasses) {
  const Workers workers{1, 2, 3};
  std::vector<std::uint64_t> counts(workers.size()), left(workers.size());
  const auto split = [&] { performance_.split(PassKind::train, 1000, workers, false, counts); };
  split();
  const std::vector<std::uint64_t> before = counts;
  performance_.has_pass_sizes(2);
  split();
  EXPECT_EQ(counts, before) << "nobody knows yet which";
  performance_.uses_micro_batch(1, 256);
  performance_.uses_micro_batch(2, 256);
  split();
  EXPECT_NE(counts, before);
  EXPECT_EQ(counts[1] % compute::pass_sizes(256, 1, true).odd, 0U);
  EXPECT_EQ(counts[0] + counts[1] + counts[2], 1000U);
  performance_.split(PassKind::train, 1000, workers, true, left);
  EXPECT_NE(left[1] % 32, 0U) << "what was lost goes to whom it goes";
}

// What holds up a step of two, a full disk of the head for one, is not all in a step alone.
TEST_F(MeasuredPerformanceTest, AStepAloneIsNoShorterThanItsComputing) {
  const double whole = kPerSample * kBatch;
  for (int i = 0; i < 10; ++i) performance_.alone(1, kBatch, whole, whole);
  passes(3, {1, 2}, 0.05);
  std::vector<std::uint64_t> counts(2);
  for (int i = 0; i < 20; ++i) {
    performance_.split(PassKind::train, kBatch, Workers{1, 2}, false, counts);
    performance_.closed(duration_of(whole));
  }
  EXPECT_TRUE(performance_.judge(kBatch, Workers{1}, 2).pays);
}

}  // namespace
}  // namespace motley::engine
