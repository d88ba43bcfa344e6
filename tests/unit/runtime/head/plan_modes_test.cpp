#include "runtime/head/plan_modes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley::runtime {
namespace {

using testing::HasSubstr;

// Of 10 s the fast device computes 8 and the slow one 4; a third is left out.
report::PlanMade plan() {
  report::PlanMade made;
  made.step_s = 10;
  made.samples_per_s = 25;
  made.shares = {{.worker = "fast", .samples = 200, .alone_samples_per_s = 30, .compute_s = 8},
                 {.worker = "slow", .samples = 50, .alone_samples_per_s = 10, .compute_s = 4},
                 {.worker = "out", .alone_samples_per_s = 10}};
  return made;
}

TEST(PlanModes, WeighComputingBySpeed) {
  const report::ModeOutlook found = exact_outlook(plan(), 5e6);
  EXPECT_EQ(found.mode, "exact");
  EXPECT_DOUBLE_EQ(found.computing, (30 * 8 + 10 * 4) / (50.0 * 10));
  EXPECT_DOUBLE_EQ(found.bytes_a_day, 5e6 * 8640);
  EXPECT_EQ(found.samples_per_s, 25);
  EXPECT_EQ(found.loss_percent, 0);
}

TEST(PlanModes, WhatARoundNeedNotWaitForMakesItShorter) {
  report::PlanMade step = plan();
  step.shares[0].exposed_s = 1;
  step.shares[1].exposed_s = 6;
  step.shares[1].up_bytes_per_s = 1e6;
  EXPECT_EQ(round_of(step, false).step_s, 10);
  const report::PlanMade hidden = round_of(step, true);
  EXPECT_DOUBLE_EQ(hidden.step_s, 8) << "half of 4 s hides 2 of the 6";
  EXPECT_DOUBLE_EQ(hidden.samples_per_s, 31.25);
  EXPECT_EQ(hidden.shares[0].exposed_s, 0);
}

const plan::RunOutline kText{.text = true, .parameters = 90'000'000, .steps = 6000};

TEST(PlanModes, SayWhatEachCosts) {
  EXPECT_THAT(
      line_of(exact_outlook(plan(), 5e6)),
      HasSubstr("exact                25.0 samples/s, computes 56 % of the time, 43.2 GB a day; the mathematics "
                "of one machine"));
  const report::ModeOutlook rounds = rounds_outlook(plan(), 30, 5e8, kText);
  EXPECT_EQ(rounds.mode, "rounds");
  EXPECT_EQ(rounds.local_steps, 30U);
  EXPECT_DOUBLE_EQ(rounds.loss_percent.value(), 0.5);
  EXPECT_THAT(line_of(rounds), HasSubstr("rounds of 30 steps"));
  EXPECT_THAT(line_of(rounds),
              HasSubstr("4.3 TB a day; final loss likely about 0.5 % above exact training at equal samples"));
  plan::RunOutline other = kText;
  other.parameters = 20'000'000;
  EXPECT_THAT(line_of(rounds_outlook(plan(), 30, 5e3, other)), HasSubstr("and carried on to smaller ones)"));
  other.text = false;
  EXPECT_FALSE(rounds_outlook(plan(), 30, 5e3, other).loss_percent);
  EXPECT_THAT(line_of(rounds_outlook(plan(), 30, 5e3, other)),
              HasSubstr("43 MB a day; what they cost in quality is not tested for this kind of model"));
}

TEST(PlanModes, APriceOfLongRunsIsNotThatOfAShortOne) {
  plan::RunOutline brief = kText;
  brief.steps = 1140;
  EXPECT_FALSE(rounds_outlook(plan(), 30, 5e3, brief).loss_percent);
  EXPECT_THAT(rounds_outlook(plan(), 30, 5e3, brief).price, HasSubstr("150 rounds and more, and this run has 38"));
}

/// Exact steps as said; a round with so many samples a second.
Measured measured(double exact, double round) {
  Measured found{.local_steps = 30, .outline = kText};
  report::PlanMade step = plan(), all = plan();
  step.samples_per_s = exact;
  step.fastest_alone = "fast";
  step.fastest_alone_samples_per_s = 30;
  all.samples_per_s = round;
  found.batches.push_back({step, all});
  return found;
}

report::ModeChosen choice(const Measured& found) { return choose_mode(found, found.batches.front()); }

TEST(PlanModes, AutoTakesRoundsWhereTheyAreWorthTheirPrice) {
  const report::ModeChosen taken = choice(measured(12, 36));
  EXPECT_EQ(taken.mode, "rounds");
  EXPECT_EQ(taken.exact_samples_per_s, 12);
  EXPECT_EQ(taken.rounds_samples_per_s, 36);
  EXPECT_DOUBLE_EQ(taken.rounds_loss_percent.value(), 0.5);
  EXPECT_THAT(taken.sentence, HasSubstr("rounds of 30 steps: 1.20 times as fast as fast alone, exact steps 0.40 times; "
                                        "final loss likely about 0.5 % above"));
  EXPECT_EQ(choice(measured(36, 36)).mode, "exact");
  const report::ModeChosen dear = choice(measured(36, 38));  // half a percent of loss takes 6.5 % more samples
  EXPECT_EQ(dear.mode, "exact");
  EXPECT_THAT(dear.sentence, HasSubstr("are not worth a loss that is likely 0.5 % higher"));
  EXPECT_EQ(choice(measured(36, 39)).mode, "rounds");
}

TEST(PlanModes, AutoTakesNothingThatIsNotKnownOrNotPossible) {
  Measured found = measured(12, 36);
  found.outline.text = false;
  EXPECT_EQ(choice(found).mode, "exact");
  EXPECT_FALSE(choice(found).rounds_loss_percent);
  EXPECT_THAT(choice(found).sentence, HasSubstr("not rounds of 30 steps: 1.20 times as fast as fast alone: what they "
                                                "cost in quality is not tested for this kind of model"));
  found = measured(12, 36);
  found.no_rounds = "train.drop_last";
  EXPECT_EQ(choice(found).mode, "exact");
  EXPECT_THAT(choice(found).sentence, HasSubstr("alone: train.drop_last"));
  found = measured(12, 36);
  found.batches.front().round.reset();
  EXPECT_EQ(choice(found).mode, "exact");
  found = measured(12, 36);
  found.batches.front().round->shares[1].samples = 0;  // a round of one device is no gain
  EXPECT_EQ(choice(found).mode, "exact");
}

TEST(PlanModes, WhatIsSlowerThanOneDeviceIsAdvisedRounds) {
  const auto advice = [](double exact, double round) {
    const Measured found = measured(exact, round);
    return advise_rounds(found.batches.front().exact, *found.batches.front().round, 30, kText);
  };
  const auto given = advice(30, 45);
  ASSERT_TRUE(given);
  EXPECT_EQ(given->set, "train.mode=rounds");
  EXPECT_THAT(given->sentence,
              HasSubstr("no faster than fast alone, and rounds of 30 steps would be about 1.5 times as "
                        "fast. They are another training: final loss likely about 0.5 % above"));
  EXPECT_DOUBLE_EQ(given->saves_s, 10 - 10 / 30.0);
  EXPECT_FALSE(advice(31, 45));  // steps of both gain something
  EXPECT_FALSE(advice(20, 35));  // and rounds do not gain enough
}

TEST(PlanModes, KnowWhatARunWillHaveSeen) {
  config::RunConfig config;
  config.model_kind = config::kScriptKind;
  config.global_batch = 10;
  config.epochs = 3;
  const plan::RunOutline run = outline_of(config, 95, 11'000'000);
  EXPECT_FALSE(run.text);
  EXPECT_EQ(run.parameters, 11'000'000U);
  EXPECT_EQ(run.steps, 30U);
  config.steps = 7;
  EXPECT_EQ(outline_of(config, 95, 1).steps, 7U);
  config.model_text = true;
  EXPECT_TRUE(outline_of(config, 95, 1).text);
}

TEST(PlanModes, KnowNothingOfNoTime) {
  EXPECT_EQ(exact_outlook(report::PlanMade(), 5e6).bytes_a_day, 0);
  EXPECT_EQ(exact_outlook(report::PlanMade(), 5e6).computing, 0);
}

}  // namespace
}  // namespace motley::runtime
