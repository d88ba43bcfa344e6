#include "config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley::config {
namespace {

using testing::HasSubstr;

RunConfig softmax(const std::vector<std::string>& overrides = {}) {
  Result<RunConfig> config = load({.target = "softmax", .overrides = overrides});
  EXPECT_TRUE(config) << (config ? "" : config.error().message);
  return config ? *config : RunConfig{};
}
Error refusal(const std::vector<std::string>& overrides) {
  Result<RunConfig> config = load({.target = "softmax", .overrides = overrides});
  EXPECT_FALSE(config) << overrides.front();
  return config ? Error{} : config.error();
}
Error failure(const std::string& toml, const std::vector<std::string>& overrides = {}) {
  Result<RunConfig> config = parse(toml, "run.toml", overrides);
  EXPECT_FALSE(config);
  return config ? Error{} : config.error();
}

TEST(Config, OverridesWinOverTheScript) {
  const Result<RunConfig> config = load({.target = "train.py",
                                         .text = "[model]\nkind = \"script\"\n[train]\nglobal_batch = 32\nseed = 3\n",
                                         .overrides = {"train.seed=7", "train.seed=9"}});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->model_kind, kScriptKind);
  EXPECT_EQ(config->global_batch, 32U);
  EXPECT_EQ(config->seed, 9U);
  const Result<RunConfig> kept = parse_kept(to_toml(softmax()), "run.toml", {"train.global_batch=16"});
  ASSERT_TRUE(kept) << kept.error().message;
  EXPECT_EQ(kept->model_kind, kSoftmaxKind);
  EXPECT_EQ(kept->global_batch, 16U);
}

TEST(Config, OverridesTakeBareStringsAndLists) {
  const RunConfig config = softmax({"train.mode=rounds", "train.shares=[0.5, 2]", "model.arguments=[\"a b\"]"});
  EXPECT_EQ(config.mode, "rounds");
  EXPECT_EQ(config.shares, (std::vector<double>{0.5, 2}));
  EXPECT_EQ(config.model_arguments, std::vector<std::string>{"a b"});
}

TEST(Config, TheTextRoundTrips) {
  RunConfig config = softmax({"train.verify=1e-5", "train.clip_norm=0.1"});
  config.model_arguments = {"with \"quotes\" and \\ and \t"};
  const Result<RunConfig> again = parse(to_toml(config), "text");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(to_toml(*again), to_toml(config));
  EXPECT_EQ(again->verify, 1e-5);
  EXPECT_EQ(again->model_arguments, config.model_arguments);
}

TEST(Config, NumbersThatTomlWouldReadAsOtherIntegersRoundTrip) {
  const RunConfig config = softmax({"train.rounds.rate=-0e-3", "train.clip_norm=123456789012345678901.0"});
  const Result<RunConfig> again = parse(to_toml(config), "text");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(to_toml(*again), to_toml(config));
  EXPECT_EQ(again->clip_norm, 123456789012345678901.0);
}

TEST(Config, AnEpochMayHaveWholeBatchesAloneAndNotBeShuffled) {
  const RunConfig config = softmax({"train.drop_last=true", "train.shuffle=false"});
  EXPECT_TRUE(config.drop_last && !config.shuffle);
  EXPECT_FALSE(softmax().drop_last || !softmax().shuffle);
  const Result<RunConfig> again = parse(to_toml(config), "text");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(again->drop_last && !again->shuffle);
}

TEST(Config, UnknownNamesGetTheNearestRightWord) {
  EXPECT_THAT(load({.target = "run.toml"}).error().message, HasSubstr("'run.toml' is neither softmax nor a script"));
  EXPECT_THAT(failure("[model]\nkind = \"softmax\"\n[train]\nglobal_bach = 3\n").hint, HasSubstr("train.global_batch"));
  EXPECT_THAT(failure("[model]\nkind = \"softmax\"\n[train]\nglobal_bach = 3\n").message, HasSubstr("run.toml:4"));
  EXPECT_THAT(failure("[model]\nkind = \"sofmax\"\n").hint, HasSubstr("softmax"));
  EXPECT_THAT(failure("[train]\nsteps = 3\n").message, HasSubstr("model.kind is missing"));
  EXPECT_THAT(refusal({"train.mode=round"}).hint, HasSubstr("rounds"));
  EXPECT_THAT(refusal({"train.sedd=1"}).hint, HasSubstr("train.seed"));
}

TEST(Config, WrongTypesNameTheRightOne) {
  const std::string softmax_file = "[model]\nkind = \"softmax\"\n";
  const Error error = failure(softmax_file + "[train]\nsteps = \"ten\"\n");
  EXPECT_EQ(error.code, ErrorCode::input);
  EXPECT_THAT(error.message, HasSubstr("train.steps: expected a whole number that is not negative, found string"));
  EXPECT_THAT(failure(softmax_file + "[train]\nsteps = -1\n").message, HasSubstr("not negative"));
  EXPECT_THAT(failure(softmax_file + "[train]\nverify = \"much\"\n").message, HasSubstr("expected a number"));
  EXPECT_THAT(failure(softmax_file + "[train]\nverify = nan\n").message, HasSubstr("expected a number"));
  EXPECT_THAT(failure(softmax_file + "[train]\nmode = 3\n").message, HasSubstr("expected a string"));
  EXPECT_THAT(failure("[model]\narguments = [3]\n").message, HasSubstr("expected a list of strings"));
  EXPECT_THAT(failure("[model]\nkind = \"softmax\"\ntrain = 3\n").message, HasSubstr("train"));
}

TEST(Config, BrokenTomlNamesTheLine) { EXPECT_THAT(failure("[model]\nkind = \n").message, HasSubstr("run.toml:2")); }

TEST(Config, ValuesOutOfRangeAreRefused) {
  for (const char* bad :
       {"train.global_batch=0", "train.steps=1.5", "train.verify=7", "train.epochs=0", "train.shares=[-1]",
        "train.shares=[1, 0]", "train.shares=[inf]", "train.min_workers=0", "wire.weights=int7", "model.kind=cnn"}) {
    refusal({bad});
  }
}

TEST(Config, AnOverrideNeedsAKeyAndAValue) {
  EXPECT_EQ(refusal({"train.steps"}).code, ErrorCode::usage);
  EXPECT_EQ(refusal({"=3"}).code, ErrorCode::usage);
}

TEST(Config, AnOverrideCannotSmuggleInMoreKeys) { refusal({"train.steps=3\nother = 4"}); }

TEST(Config, EpochsTakeThePlaceOfStepsThatWereSaidBefore) {
  const auto steps = [](const std::vector<std::string>& overrides) {
    const Result<RunConfig> config = load(
        {.target = "train.py", .text = "[model]\nkind = \"script\"\n[train]\nsteps = 2000\n", .overrides = overrides});
    EXPECT_TRUE(config) << config.error().message;
    return config ? config->steps : 0;
  };
  EXPECT_EQ(steps({}), 2000U);
  EXPECT_EQ(steps({"train.epochs=3"}), 0U);
  EXPECT_EQ(steps({"train.epochs=3", "train.steps=7"}), 7U);
}

TEST(Config, TheListOfKeysHasWhatTheyTakeAndTheirDefaults) {
  const std::vector<std::string> keys = describe_keys();
  EXPECT_LE(keys.size(), 30U);
  EXPECT_THAT(keys, testing::Contains(HasSubstr("model.arguments (a list of strings, default []): ")));
  EXPECT_THAT(keys, testing::Contains(HasSubstr("train.shares (a list of numbers, default []): ")));
}

TEST(Config, TheRateOfRoundsIsOnesOwnOrThatOfTheWorkers) {
  EXPECT_FALSE(rate_by_workers(softmax({})));
  EXPECT_TRUE(rate_by_workers(softmax({"train.mode=rounds", "train.rounds.momentum=0.9"})));
  const RunConfig own = softmax({"train.mode=rounds", "train.rounds.momentum=0.9", "train.rounds.rate=0.7"});
  EXPECT_FALSE(rate_by_workers(own));
  EXPECT_EQ(outer_spec(own, 1).groups[0].lr, 0.7);
  const RunConfig means = softmax({"train.mode=rounds", "train.rounds.momentum=0"});
  EXPECT_FALSE(rate_by_workers(means));
  EXPECT_EQ(outer_spec(means, 1).groups[0].lr, 1);
  EXPECT_FALSE(outer_spec(means, 1).groups[0].nesterov);
  refusal({"train.rounds.rate=-0.1"});
  refusal({"train.rounds.momentum=-0.5"});
  refusal({"train.rounds.rate=11"});
}

TEST(Config, WhatEarlierVersionsHadIsRefusedByName) {
  const auto refused = parse("[model]\nkind = \"softmax\"\n[train]\nmode = \"helper\"\n", "run.toml");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "run.toml:4: train.mode = \"helper\" is not in this version of motley");
  EXPECT_EQ(refused.error().hint, "--set train.mode=auto, in a new run");
  EXPECT_EQ(refusal({"wire.gradients=top64"}).hint, "--set wire.gradients=int4, in a new run");
  for (const char* batch : {"auto", "auto:64"}) {
    const Error found = refusal({std::string("train.global_batch=") + batch});
    EXPECT_THAT(found.message, HasSubstr("train.global_batch = \"" + std::string(batch) + "\" is not in"));
    EXPECT_EQ(found.hint, "--set train.global_batch=256, in a new run");
  }
}

TEST(Config, KeysThatAreTheScriptsOwnAreRefusedByName) {
  for (const char* key : {"data.uri=fashion-mnist", "data.test_uri=", "optimizer.lr=0.1", "schedule.kind=cosine",
                          "model.hidden=[3]", "model.loss=mse", "optimizer.groups=[]"}) {
    const std::string name = std::string(key).substr(0, std::string(key).find('='));
    const Error error = refusal({key});
    EXPECT_THAT(error.message,
                HasSubstr(name + " is not in this version of motley: keys of data, model and optimizer"));
    EXPECT_THAT(error.hint, HasSubstr("give them to the script as its arguments"));
  }
  EXPECT_EQ(
      failure("[model]\nkind = \"mlp\"\n").message,
      "run.toml:2: model.kind = \"mlp\" is not in this version of motley: keys of data, model and optimizer are the "
      "script's own");
}

TEST(Config, ARunOfAnEarlierVersionIsRefusedAsSuch) {
  for (const char* text : {"[model]\nkind = \"fashion-cnn\"\n", "[model]\nkind = \"script\"\nfile = \"\"\n",
                           "[model]\nkind = \"softmax\"\n[data]\nuri = \"synthetic:9:9:9\"\n",
                           "[model]\nkind = \"softmax\"\n[[optimizer.groups]]\nmatch = \"*\"\n"}) {
    const Result<RunConfig> kept = parse_kept(text, "runs/a/run.toml");
    ASSERT_FALSE(kept) << text;
    EXPECT_THAT(kept.error().message, HasSubstr("runs/a/run.toml:"));
    EXPECT_THAT(kept.error().message, HasSubstr(": this run was made by an earlier motley"));
    EXPECT_EQ(kept.error().hint, "go on with that version of it, or begin a new run");
  }
}

TEST(Config, AKeyOfAnEarlierVersionMaySayWhatIsDoneNow) {
  const std::string file = "model.kind = \"softmax\"\nwire.chain = ";
  EXPECT_EQ(*parse(file + "\"none\"", "run.toml"), softmax());
  EXPECT_EQ(failure(file + "\"auto\"").message, "run.toml:2: wire.chain = \"auto\" is not in this version of motley");
  EXPECT_EQ(failure(file + "\"auto\"").hint, "--set wire.gradients=auto, in a new run");
  refusal({"wire.chain=both"});
  EXPECT_FALSE(parse(file + "1", "run.toml"));
}

// 1,000 samples in batches of 10 are an epoch of 100 steps.
std::string refusal_of_rounds(const std::vector<std::string>& overrides) {
  std::vector<std::string> all{"train.mode=rounds", "train.global_batch=10"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  const Status fits = check_whole_rounds(softmax(all), 1000);
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
  EXPECT_EQ(sizes(softmax({"train.mode=rounds", "train.global_batch=10", "train.rounds.steps=30",
                           "train.evaluate_every=200"}),
                  1000)
                .evaluate_every,
            8U);
}

}  // namespace
}  // namespace motley::config
