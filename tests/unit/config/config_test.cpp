#include "config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley::config {
namespace {

using testing::HasSubstr;

RunConfig recipe(const std::string& name, const std::vector<std::string>& overrides = {}) {
  Result<RunConfig> config = load(name, overrides);
  EXPECT_TRUE(config) << (config ? "" : config.error().message);
  return config ? *config : RunConfig{};
}
Error failure(const std::string& toml, const std::vector<std::string>& overrides = {}) {
  Result<RunConfig> config = parse(toml, "run.toml", overrides);
  EXPECT_FALSE(config);
  return config ? Error{} : config.error();
}

TEST(Config, RecipesComplete) {
  for (const std::string& name : recipe_names()) {
    const bool own_data = name == "gpt-mini";
    const RunConfig config =
        recipe(name, own_data ? std::vector<std::string>{"data.uri=text:a"} : std::vector<std::string>{});
    EXPECT_EQ(config.model_kind, name);
    EXPECT_FALSE(config.data_uri.empty());
  }
}

TEST(Config, OverridesWinOverFileOverRecipe) {
  const Result<RunConfig> config =
      parse("[model]\nkind = \"mlp\"\n[train]\nglobal_batch = 64\nseed = 3\n", "run.toml", {"train.seed=9"});
  ASSERT_TRUE(config);
  EXPECT_EQ(config->data_uri, "fashion-mnist");
  EXPECT_EQ(config->global_batch, 64U);
  EXPECT_EQ(config->seed, 9U);
}

TEST(Config, OverridesTakeBareStringsAndLists) {
  const RunConfig config =
      recipe("mlp", {"optimizer.kind=adamw", "model.hidden=[32, 16]", "train.shares=[0.5, 2]", "data.uri=a b+c"});
  EXPECT_EQ(config.optimizer_kind, "adamw");
  EXPECT_EQ(config.model_hidden, (std::vector<std::int64_t>{32, 16}));
  EXPECT_EQ(config.shares, (std::vector<double>{0.5, 2}));
  EXPECT_EQ(config.data_uri, "a b+c");
}

TEST(Config, TheTextRoundTrips) {
  RunConfig config =
      recipe("fashion-cnn", {"optimizer.lr=1e-5", "train.clip_norm=0.1", "data.uri=with \"quotes\" and \\ and \t"});
  config.groups.push_back({"*.bias", {}, 0.0, {}});
  config.groups.push_back({"fc?.weight", 0.25, {}, 0.5});
  const Result<RunConfig> again = parse(to_toml(config), "text");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(to_toml(*again), to_toml(config));
  EXPECT_EQ(again->groups, config.groups);
  EXPECT_EQ(again->optimizer.lr, 1e-5);
}

TEST(Config, NumbersThatTomlWouldReadAsOtherIntegersRoundTrip) {
  const RunConfig config = recipe("mlp", {"optimizer.lr=-0e-3", "train.clip_norm=123456789012345678901.0"});
  const Result<RunConfig> again = parse(to_toml(config), "text");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(to_toml(*again), to_toml(config));
  EXPECT_EQ(again->clip_norm, 123456789012345678901.0);
}

TEST(Config, AnEpochMayHaveWholeBatchesAloneAndNotBeShuffled) {
  const RunConfig config = recipe("mlp", {"train.drop_last=true", "train.shuffle=false"});
  EXPECT_TRUE(config.drop_last && !config.shuffle);
  EXPECT_FALSE(recipe("mlp").drop_last || !recipe("mlp").shuffle);
  const Result<RunConfig> again = parse(to_toml(config), "text");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(again->drop_last && !again->shuffle);
}

TEST(Config, UnknownNamesGetTheNearestRightWord) {
  EXPECT_THAT(load("fashon-cnn", {}).error().hint, HasSubstr("fashion-cnn"));
  EXPECT_THAT(failure("[model]\nkind = \"mlp\"\n[train]\nglobal_bach = 3\n").hint, HasSubstr("train.global_batch"));
  EXPECT_THAT(failure("[model]\nkind = \"mlp\"\n[train]\nglobal_bach = 3\n").message, HasSubstr("run.toml:4"));
  EXPECT_THAT(failure("[model]\nkind = \"mpl\"\n").hint, HasSubstr("mlp"));
  EXPECT_THAT(load("mlp", {"optimizer.kind=adm"}).error().hint, HasSubstr("adam"));
  EXPECT_THAT(load("mlp", {"train.sedd=1"}).error().hint, HasSubstr("train.seed"));
}

TEST(Config, WrongTypesNameTheRightOne) {
  const Error error = failure("[model]\nkind = \"mlp\"\n[train]\nsteps = \"ten\"\n");
  EXPECT_EQ(error.code, ErrorCode::input);
  EXPECT_THAT(error.message, HasSubstr("train.steps: expected a whole number that is not negative, found string"));
  EXPECT_THAT(failure("[model]\nkind = \"mlp\"\n[train]\nsteps = -1\n").message, HasSubstr("not negative"));
  EXPECT_THAT(failure("[model]\nkind = \"mlp\"\n[optimizer]\nlr = \"fast\"\n").message, HasSubstr("expected a number"));
  EXPECT_THAT(failure("[model]\nkind = \"mlp\"\n[optimizer]\nlr = nan\n").message, HasSubstr("expected a number"));
  EXPECT_THAT(failure("[model]\nkind = \"mlp\"\ntrain = 3\n").message, HasSubstr("train"));
}

TEST(Config, BrokenTomlNamesTheLine) { EXPECT_THAT(failure("[model]\nkind = \n").message, HasSubstr("run.toml:2")); }

TEST(Config, ValuesOutOfRangeAreRefused) {
  for (const char* bad :
       {"train.global_batch=0", "train.steps=1.5", "optimizer.nesterov=7", "optimizer.momentum=1.5", "train.epochs=0",
        "data.std=0", "schedule.step_size=0", "optimizer.nesterov=true", "train.shares=[-1]", "train.shares=[1, 0]",
        "train.shares=[inf]", "train.min_workers=0", "wire.weights=int7"}) {
    EXPECT_FALSE(load("softmax", {bad})) << bad;
  }
}

TEST(Config, AnOverrideNeedsAKeyAndAValue) {
  EXPECT_EQ(load("mlp", {"train.steps"}).error().code, ErrorCode::usage);
  EXPECT_EQ(load("mlp", {"=3"}).error().code, ErrorCode::usage);
}

TEST(Config, AnOverrideCannotSmuggleInMoreKeys) { EXPECT_FALSE(load("mlp", {"train.steps=3\nother = 4"})); }

TEST(Config, GroupsTakeTheLastPatternThatMatches) {
  RunConfig config = recipe("mlp");
  config.optimizer.lr = 0.1;
  config.groups = {{"*.bias", {}, 0.0, {}}, {"fc2.*", 0.5, {}, {}}};
  EXPECT_EQ(group_of(config, "fc1.weight"), 0U);
  EXPECT_EQ(group_of(config, "fc1.bias"), 1U);
  EXPECT_EQ(group_of(config, "fc2.bias"), 2U);
  const ps::OptimizerSpec spec = optimizer_spec(config);
  ASSERT_EQ(spec.groups.size(), 3U);
  EXPECT_EQ(spec.groups[1].lr, 0.1);
  EXPECT_EQ(spec.groups[2].lr, 0.5);
}

TEST(Config, APatternOfManyStarsIsMatchedQuickly) {
  RunConfig config = recipe("mlp");
  config.groups = {{std::string(64, '*').append("x"), {}, {}, {}}};
  EXPECT_EQ(group_of(config, std::string(256, 'a')), 0U);
}

TEST(Config, AdamwDecaysByDefaultAsTorchDoes) {
  EXPECT_EQ(recipe("mlp", {"optimizer.kind=adamw"}).optimizer.weight_decay, 0.01);
  EXPECT_EQ(recipe("mlp", {"optimizer.kind=adamw", "optimizer.weight_decay=0"}).optimizer.weight_decay, 0);
  EXPECT_EQ(recipe("mlp", {"optimizer.kind=adam"}).optimizer.weight_decay, 0);
}

TEST(Config, AGptNeedsATextAndSaysHow) {
  const Result<RunConfig> config = load("gpt-mini", {});
  ASSERT_FALSE(config);
  EXPECT_THAT(config.error().message, HasSubstr("data.uri is missing"));
  EXPECT_EQ(config.error().hint, "motley train gpt-mini --set data.uri=text:FILE");
}

TEST(Config, AGptIsTestedOnItsOwnTextUnlessToldOtherwise) {
  EXPECT_EQ(recipe("gpt-mini", {"data.uri=a.txt"}).data_test_uri, "a.txt");
  EXPECT_EQ(recipe("gpt-mini", {"data.uri=a.txt", "data.test_uri=b.txt"}).data_test_uri, "b.txt");
  EXPECT_EQ(recipe("gpt-mini", {"data.uri=a.txt", "data.test_uri=\"\""}).data_test_uri, "");
}

TEST(Config, AGptChecksItsSizes) {
  const auto refused = [](const std::string& override) {
    const Result<RunConfig> config = load("gpt-mini", {"data.uri=a.txt", override});
    EXPECT_FALSE(config) << override;
    return config ? Error{} : config.error();
  };
  EXPECT_THAT(refused("model.heads=5").message,
              HasSubstr("model.width: expected a multiple of model.heads (5), found 384"));
  EXPECT_EQ(refused("model.heads=5").hint, "--set model.width=385");
  for (const char* bad : {"model.block=0", "model.layers=0", "model.heads=0", "model.width=0"}) {
    EXPECT_THAT(refused(bad).message, HasSubstr("expected 1 to"));
  }
  EXPECT_EQ(recipe("gpt-mini", {"data.uri=a.txt", "model.heads=4", "model.width=64"}).model_width, 64U);
}

TEST(Config, AGptDecaysMatricesOnly) {
  const RunConfig config = recipe("gpt-mini", {"data.uri=a.txt"});
  const ps::OptimizerSpec spec = optimizer_spec(config);
  const auto decay = [&](const std::string& tensor) { return spec.groups[group_of(config, tensor)].weight_decay; };
  EXPECT_EQ(decay("transformer.h.11.attn.c_attn.weight"), 0.1);
  EXPECT_EQ(decay("transformer.wte.weight"), 0.1);
  EXPECT_EQ(decay("transformer.h.0.mlp.c_fc.bias"), 0);
  EXPECT_EQ(decay("transformer.h.0.ln_1.weight"), 0);
  EXPECT_EQ(decay("transformer.ln_f.weight"), 0);
}

TEST(Config, TheListOfKeysHasGroupsBehindTheOptimizersOwn) {
  const std::vector<std::string> keys = describe_keys();
  const auto groups =
      std::ranges::find_if(keys, [](const std::string& line) { return line.starts_with("optimizer.groups ("); });
  ASSERT_NE(groups, keys.end());
  EXPECT_TRUE((groups - 1)->starts_with("optimizer.") && (groups + 1)->starts_with("schedule."));
}

TEST(Config, GroupsOfARecipeCanBeTakenAway) {
  const RunConfig config = recipe("gpt-mini", {"data.uri=a.txt", "optimizer.groups=[]"});
  EXPECT_TRUE(config.groups.empty());
  const Result<RunConfig> again = parse(to_toml(config), "text");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(again->groups.empty());
}

TEST(Config, EpochsTakeThePlaceOfARecipesSteps) {
  EXPECT_EQ(recipe("gpt-mini", {"data.uri=a.txt"}).steps, 2000U);
  EXPECT_EQ(recipe("gpt-mini", {"data.uri=a.txt", "train.epochs=3"}).steps, 0U);
  EXPECT_EQ(recipe("gpt-mini", {"data.uri=a.txt", "train.epochs=3", "train.steps=7"}).steps, 7U);
}

TEST(Config, TheCosineRunsToTheEndAfterWarmUp) {
  const RunConfig config = recipe("mlp", {"schedule.kind=cosine", "schedule.warmup_steps=10"});
  EXPECT_EQ(schedule_spec(config, 100).total_steps, 90U);
  EXPECT_EQ(schedule_spec(recipe("mlp", {"schedule.steps=50"}), 100).total_steps, 50U);
}

TEST(Config, TheRateOfRoundsIsOnesOwnOrThatOfTheWorkers) {
  EXPECT_FALSE(rate_by_workers(recipe("mlp", {})));
  EXPECT_TRUE(rate_by_workers(recipe("mlp", {"train.mode=rounds", "train.rounds.momentum=0.9"})));
  const RunConfig own = recipe("mlp", {"train.mode=rounds", "train.rounds.momentum=0.9", "train.rounds.rate=0.7"});
  EXPECT_FALSE(rate_by_workers(own));
  EXPECT_EQ(outer_spec(own, 1).groups[0].lr, 0.7);
  const RunConfig means = recipe("mlp", {"train.mode=rounds", "train.rounds.momentum=0"});
  EXPECT_FALSE(rate_by_workers(means));
  EXPECT_EQ(outer_spec(means, 1).groups[0].lr, 1);
  EXPECT_FALSE(outer_spec(means, 1).groups[0].nesterov);
  EXPECT_FALSE(load("mlp", {"train.rounds.rate=-0.1"}));
  EXPECT_FALSE(load("mlp", {"train.rounds.momentum=-0.5"}));
  EXPECT_FALSE(load("mlp", {"train.rounds.rate=11"}));
}

TEST(Config, WhatEarlierVersionsHadIsRefusedByName) {
  const auto refused = parse("[model]\nkind = \"mlp\"\n[train]\nmode = \"helper\"\n", "run.toml");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "run.toml:4: train.mode = \"helper\" is not in this version of motley");
  EXPECT_EQ(refused.error().hint, "--set train.mode=auto, in a new run");
  EXPECT_EQ(load("mlp", {"wire.gradients=top64"}).error().hint, "--set wire.gradients=int4, in a new run");
  for (const char* batch : {"auto", "auto:64"}) {
    const auto found = load("mlp", {std::string("train.global_batch=") + batch});
    ASSERT_FALSE(found);
    EXPECT_THAT(found.error().message, HasSubstr("train.global_batch = \"" + std::string(batch) + "\" is not in"));
    EXPECT_EQ(found.error().hint, "--set train.global_batch=256, in a new run");
  }
}

TEST(Config, AKeyOfAnEarlierVersionMaySayWhatIsDoneNow) {
  const std::string file = "model.kind = \"mlp\"\nwire.chain = ";
  EXPECT_EQ(*parse(file + "\"none\"", "run.toml"), recipe("mlp"));
  EXPECT_EQ(failure(file + "\"auto\"").message, "run.toml:2: wire.chain = \"auto\" is not in this version of motley");
  EXPECT_EQ(failure(file + "\"auto\"").hint, "--set wire.gradients=auto, in a new run");
  EXPECT_FALSE(load("mlp", {"wire.chain=both"}));
  EXPECT_FALSE(parse(file + "1", "run.toml"));
}

// 1,000 samples in batches of 10 are an epoch of 100 steps.
std::string refusal_of_rounds(const std::vector<std::string>& overrides) {
  std::vector<std::string> all{"train.mode=rounds", "train.global_batch=10"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  const Status fits = check_whole_rounds(recipe("mlp", all), 1000);
  return fits ? "" : fits.error().message + " | " + fits.error().hint;
}

TEST(Config, ARunThatEndsInsideOfARoundIsRefusedWithStepsThatFit) {
  const auto refusal = [](std::uint64_t steps, std::uint64_t of_round) {
    return refusal_of_rounds(
        {"train.steps=" + std::to_string(steps), "train.rounds.steps=" + std::to_string(of_round)});
  };
  EXPECT_EQ(refusal(60, 30), "");
  EXPECT_EQ(refusal(100, 30), "");
  EXPECT_EQ(refusal(230, 30), "");
  EXPECT_THAT(refusal(70, 30), HasSubstr("10 steps into a round; rounds are whole | --set train.steps=90,"));
  EXPECT_THAT(refusal(95, 30), HasSubstr("5 steps into a round; rounds are whole | --set train.steps=100,"));
  EXPECT_THAT(refusal(295, 30), HasSubstr("| --set train.steps=300,"));
}

TEST(Config, AnEvaluationInsideOfARoundIsRefused) {
  const auto refusal = [](std::uint64_t every, std::uint64_t of_round, const std::string& length) {
    return refusal_of_rounds(
        {"train.evaluate_every=" + std::to_string(every), "train.rounds.steps=" + std::to_string(of_round), length});
  };
  EXPECT_EQ(refusal(0, 30, "train.epochs=3"), "");
  EXPECT_EQ(refusal(50, 25, "train.epochs=3"), "");
  EXPECT_EQ(refusal(150, 25, "train.epochs=3"), "");
  EXPECT_EQ(refusal(200, 30, "train.epochs=3"), "");
  EXPECT_EQ(refusal(60, 30, "train.epochs=1"), "");
  EXPECT_THAT(refusal(60, 25, "train.epochs=3"),
              HasSubstr("10 steps into a round; rounds are whole | --set train.evaluate_every=75,"));
  EXPECT_THAT(refusal(95, 30, "train.epochs=1"), HasSubstr("| --set train.evaluate_every=100,"));
  EXPECT_THAT(refusal(60, 30, "train.epochs=3"), HasSubstr("in some epochs, of 100 steps in rounds of 30"));
  EXPECT_EQ(sizes(recipe("mlp", {"train.mode=rounds", "train.global_batch=10", "train.rounds.steps=30",
                                 "train.evaluate_every=200"}),
                  1000)
                .evaluate_every,
            8U);
}

}  // namespace
}  // namespace motley::config
