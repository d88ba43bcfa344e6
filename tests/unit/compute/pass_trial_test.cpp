#include "compute/pass_trial.h"

#include "mac.h"

namespace motley::compute {
namespace {

struct Gradient final : Sink {
  void progress(std::uint64_t) noexcept override {}
  void begin(std::uint64_t, double weight, double) noexcept override { declared = weight; }
  void ready(ChunkId, std::span<const float> chunk) noexcept override { values.assign(chunk.begin(), chunk.end()); }
  double declared = 0;
  std::vector<float> values;
};

struct Ones final : Weights {
  explicit Ones(const Layout& of) : layout(of), values(of.flat_elements(), 1.0F) {}
  std::span<const float> get(ChunkId chunk) override {
    return std::span(values).first(layout.chunks()[chunk].elements);
  }
  const Layout& layout;
  std::vector<float> values;
};

/// Of a task whose samples are 0 to count - 1.
float gradient_of(std::uint64_t count) { return static_cast<float>(count * (count + 1) / 2); }

TEST(PassSizes, AreTwoWhateverIsLeft) {
  for (const std::uint32_t full : {1U, 2U, 3U, 7U, 8U, 20U, 64U, 100U, 256U}) {
    const PassSizes sizes = pass_sizes(full, 1, true);
    EXPECT_GE(sizes.odd, 1U);
    EXPECT_LE(sizes.odd, full);
    for (std::uint64_t lease = 1; lease < 600; ++lease) {
      std::uint64_t left = lease;
      int passes = 0;
      while (left > 0) {
        const PassCut cut = next_pass(left, sizes);
        const std::uint64_t size = cut.count * cut.repeats;
        EXPECT_TRUE(size == sizes.full || size == sizes.odd) << full << ' ' << lease;
        left -= cut.count;
        ++passes;
      }
      EXPECT_LE(passes, static_cast<int>(lease / full) + 24);
    }
  }
  EXPECT_EQ(pass_sizes(100, 32, true), (PassSizes{96, 32}));
  EXPECT_EQ(pass_sizes(100, 1, false), (PassSizes{100, 1}));
}

TEST(PassSizes, LeaveLittleOfABatch) {
  EXPECT_EQ(full_pass(64, 100, 1), 50U);
  EXPECT_EQ(full_pass(128, 100, 1), 100U);
  EXPECT_EQ(full_pass(64, 256, 32), 64U);
  EXPECT_EQ(full_pass(64, 160, 32), 32U);
}

TEST(PassTrial, MakesPassesShortEnough) {
  for (const double per_sample : {1e-5, 1e-3, 1e-2, 0.1}) {
    Mac mac({}, per_sample);
    TaskLoop loop(mac);
    const Result<PassesTried> tried = try_passes_of(mac, loop, 512);
    ASSERT_TRUE(tried);
    EXPECT_EQ(tried->wrong, "");
    EXPECT_LT(mac.longest, 0.5) << per_sample;
    EXPECT_LE(mac.clock, 1.2) << per_sample << ' ' << tried->sizes.full;
    if (per_sample < 1e-4) {
      EXPECT_EQ(tried->sizes.full, 512U);
    }
    if (per_sample == 1e-3) {
      EXPECT_GE(tried->sizes.full, 100U);
    }
  }
}

TEST(PassTrial, FindsGradientsThatAreWrongAfterAPassOfAnotherSize) {
  for (const double times : {1e4, 0.5, 0.0, 1.05}) {
    Mac mac({.after_other_size = times});
    TaskLoop loop(mac);
    const Result<PassesTried> tried = try_passes_of(mac, loop, 64);
    ASSERT_TRUE(tried);
    EXPECT_NE(tried->wrong.find("samples in one pass, after one of"), std::string::npos) << times;
  }
}

TEST(PassTrial, RaisesNoAlarmInTwoHundredJoins) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Mac mac({}, 1e-4 * static_cast<double>(seed), seed);
    mac.group_size = seed % 3 == 0 ? 32 : 0;
    TaskLoop loop(mac);
    const Result<PassesTried> tried =
        try_passes_of(mac, loop, 100 + static_cast<std::uint32_t>(seed), mac.group_size == 0 ? 1 : 32);
    ASSERT_TRUE(tried);
    EXPECT_EQ(tried->wrong, "") << seed;
  }
}

TEST(PassTrial, ComesToSmallerPassesWhereTheDriverGivesLongOnesUp) {
  Mac mac({.too_long = 0.1}, 1e-3);
  TaskLoop loop(mac);
  const Result<PassesTried> tried = try_passes_of(mac, loop, 512);
  ASSERT_TRUE(tried);
  EXPECT_EQ(tried->wrong, "");
  EXPECT_LT(tried->sizes.full, 100U);
}

// As the compute thread does it: what is wrong is computed again.
struct Leases {
  Mac mac;
  TaskLoop loop{mac};
  DeviceCare care;
  std::uint64_t alarms = 0;
  bool out = false;

  explicit Leases(MacFaults faults, std::uint64_t seed) : mac(faults, 1e-5, seed) {}
  std::vector<float> run(std::uint64_t count, PassSizes sizes) {
    const std::vector<std::uint64_t> indices = first_samples(count);
    Ones weights(mac.layout());
    Task task;
    task.indices = indices;
    task.micro_batch = sizes.full;
    task.odd = sizes.odd;
    for (;;) {
      Gradient sink;
      const Result<Outcome> outcome = loop.run(task, weights, sink, NoStop());
      if (outcome) {
        EXPECT_EQ(sink.declared, static_cast<double>(count));
        care.went_well();
        return sink.values;
      }
      const std::optional<Fault> fault = loop.take_fault();
      EXPECT_TRUE(fault);
      ++alarms;
      if (!fault || care.decide(*fault, false) == DeviceCare::Act::out) {
        out = true;
        return {};
      }
    }
  }
};

TEST(DeviceCare, BelievesADeviceThatIsRightForAHundredThousandLeases) {
  Leases leases({.after_other_size = 1}, 7);
  const PassSizes sizes = pass_sizes(20, 1, true);
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    const std::uint64_t count = 1 + i * 2'654'435'761 % 60;
    const std::vector<float> found = leases.run(count, sizes);
    ASSERT_EQ(leases.alarms, 0U);
    ASSERT_NEAR(found.front(), gradient_of(count), 1e-5F * gradient_of(count));
  }
  EXPECT_EQ(leases.mac.sizes, (std::set<std::uint64_t>{2, 20}));
}

TEST(DeviceCare, ComputesAgainWhatWasNeverWrittenAndIsOverWithADeviceThatDoesSoOften) {
  const PassSizes sizes = pass_sizes(20, 1, true);
  Leases seldom({.lost = 1e-5}, 3);
  for (std::uint64_t i = 0; i < 20'000 && !seldom.out; ++i) {
    const std::uint64_t count = 1 + i % 50;
    const std::vector<float> found = seldom.run(count, sizes);
    if (!found.empty()) {
      ASSERT_NEAR(found.front(), gradient_of(count), 1e-5F * gradient_of(count));
    }
  }
  EXPECT_FALSE(seldom.out);
  EXPECT_GT(seldom.alarms, 0U);
  Leases often({.lost = 0.1}, 3);
  int leases = 0;
  while (!often.out && leases < 20) {
    const std::vector<float> found = often.run(50, sizes);
    if (!found.empty()) {
      EXPECT_NEAR(found.front(), gradient_of(50), 1e-5F * gradient_of(50));
    }
    ++leases;
  }
  EXPECT_TRUE(often.out);
}

TEST(DeviceCare, KnowsTheWordsOfADriver) {
  EXPECT_EQ(fault_in("a warning"), std::nullopt);
  const auto aborted = fault_in("Execution of the command buffer was aborted due to an error during execution.");
  ASSERT_TRUE(aborted);
  EXPECT_EQ(aborted->kind, Fault::Kind::aborted);
  const auto too_long = fault_in("(0000000e:kIOGPUCommandBufferCallbackErrorImpactingInteractivity)");
  ASSERT_TRUE(too_long);
  EXPECT_EQ(too_long->kind, Fault::Kind::too_long);
  for (const Fault& fault : {*aborted, *too_long})
    EXPECT_EQ(fault_in(sentence_of(fault, "mps")), std::nullopt) << "it would be heard again";
  DeviceCare care;
  EXPECT_EQ(care.decide(*too_long, true), DeviceCare::Act::again_in_smaller_passes);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(care.decide(*too_long, false), DeviceCare::Act::again);
  EXPECT_EQ(care.decide(*aborted, true), DeviceCare::Act::out);
}

TEST(DeviceCare, SeesPassesThatTakeTooLongThreeTimesInARow) {
  DeviceCare care;
  EXPECT_FALSE(care.too_slow(0.6, 0.5));
  EXPECT_FALSE(care.too_slow(0.6, 0.5));
  EXPECT_FALSE(care.too_slow(0.4, 0.5));
  EXPECT_FALSE(care.too_slow(0.6, 0.5));
  EXPECT_FALSE(care.too_slow(0.6, 0.5));
  EXPECT_TRUE(care.too_slow(0.6, 0.5));
}

}  // namespace
}  // namespace motley::compute
