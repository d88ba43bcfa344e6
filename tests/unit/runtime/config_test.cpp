#include "runtime/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley::runtime {
namespace {

using testing::HasSubstr;

RunConfig recipe(const std::string& name, const std::vector<std::string>& overrides = {}) {
  Result<RunConfig> config = load_config(name, overrides);
  EXPECT_TRUE(config) << (config ? "" : config.error().message);
  return config ? *config : RunConfig{};
}
Error failure(const std::string& toml, const std::vector<std::string>& overrides = {}) {
  Result<RunConfig> config = parse_config(toml, "run.toml", overrides);
  EXPECT_FALSE(config);
  return config ? Error{} : config.error();
}

TEST(Config, RecipesComplete) {
  for (const std::string& name : recipe_names()) {
    const RunConfig config = recipe(name);
    EXPECT_EQ(config.model_kind, name);
    EXPECT_FALSE(config.data_uri.empty());
  }
}

TEST(Config, OverridesWinOverFileOverRecipe) {
  const Result<RunConfig> config =
      parse_config("[model]\nkind = \"mlp\"\n[train]\nglobal_batch = 64\nseed = 3\n", "run.toml", {"train.seed=9"});
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
  const Result<RunConfig> again = parse_config(to_toml(config), "text");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(to_toml(*again), to_toml(config));
  EXPECT_EQ(again->groups, config.groups);
  EXPECT_EQ(again->optimizer.lr, 1e-5);
}

TEST(Config, UnknownNamesGetTheNearestRightWord) {
  EXPECT_THAT(load_config("fashon-cnn", {}).error().hint, HasSubstr("fashion-cnn"));
  EXPECT_THAT(failure("[model]\nkind = \"mlp\"\n[train]\nglobal_bach = 3\n").hint, HasSubstr("train.global_batch"));
  EXPECT_THAT(failure("[model]\nkind = \"mlp\"\n[train]\nglobal_bach = 3\n").message, HasSubstr("run.toml:4"));
  EXPECT_THAT(failure("[model]\nkind = \"mpl\"\n").hint, HasSubstr("mlp"));
  EXPECT_THAT(load_config("mlp", {"optimizer.kind=adm"}).error().hint, HasSubstr("adam"));
  EXPECT_THAT(load_config("mlp", {"train.sedd=1"}).error().hint, HasSubstr("train.seed"));
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
       {"train.global_batch=0", "optimizer.momentum=1.5", "train.epochs=0", "data.std=0", "schedule.step_size=0",
        "optimizer.nesterov=true", "train.shares=[-1]", "train.min_workers=0", "wire.gradients=int8"}) {
    EXPECT_FALSE(load_config("softmax", {bad})) << bad;
  }
}

TEST(Config, AnOverrideNeedsAKeyAndAValue) {
  EXPECT_EQ(load_config("mlp", {"train.steps"}).error().code, ErrorCode::usage);
  EXPECT_EQ(load_config("mlp", {"=3"}).error().code, ErrorCode::usage);
}

TEST(Config, AnOverrideCannotSmuggleInMoreKeys) { EXPECT_FALSE(load_config("mlp", {"train.steps=3\nother = 4"})); }

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
  config.groups = {{std::string(64, '*') + "x", {}, {}, {}}};
  EXPECT_EQ(group_of(config, std::string(256, 'a')), 0U);
}

TEST(Config, AdamwDecaysByDefaultAsTorchDoes) {
  EXPECT_EQ(recipe("mlp", {"optimizer.kind=adamw"}).optimizer.weight_decay, 0.01);
  EXPECT_EQ(recipe("mlp", {"optimizer.kind=adamw", "optimizer.weight_decay=0"}).optimizer.weight_decay, 0);
  EXPECT_EQ(recipe("mlp", {"optimizer.kind=adam"}).optimizer.weight_decay, 0);
}

TEST(Config, TheCosineRunsToTheEndAfterWarmUp) {
  const RunConfig config = recipe("mlp", {"schedule.kind=cosine", "schedule.warmup_steps=10"});
  EXPECT_EQ(schedule_spec(config, 100).total_steps, 90U);
  EXPECT_EQ(schedule_spec(recipe("mlp", {"schedule.steps=50"}), 100).total_steps, 50U);
}

}  // namespace
}  // namespace motley::runtime
