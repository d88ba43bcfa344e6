#include "api/provider.h"

#include <gmock/gmock.h>

#include "motley/run.h"

namespace motley::api {
namespace {

using testing::ElementsAre, testing::HasSubstr;

class OneTensor final : public Model {
 public:
  OneTensor() { lay({.name = "w", .shape = {3}}); }

  void lay(LayoutEntry entry) { layout_ = Layout::make({std::move(entry)}).value(); }
  const Layout& layout() const override { return layout_; }
  Result<std::vector<float>> initial_weights() override {
    return std::vector<float>(layout_.flat_elements() + more_weights, 0.5F);
  }
  Optimizer optimizer() const override { return optimizer_of_run; }
  Samples train_samples() const override { return train; }
  Samples test_samples() const override { return test; }
  std::vector<std::string> arguments() const override { return words; }
  Result<std::unique_ptr<DeviceModel>> device(const std::string& name, unsigned) override {
    return Error{ErrorCode::memory, name + " is full", ""};
  }

  std::size_t more_weights = 0;
  Optimizer optimizer_of_run{.groups = {{.lr = 0.5}}};
  Samples train{8, "(float32 [3], int64 [])", 17}, test{2, "(float32 [3], int64 [])"};
  std::vector<std::string> words;

 private:
  Layout layout_;
};

TEST(Provider, HandsAModelOn) {
  OneTensor model;
  model.words = {"--width", "3"};
  model.optimizer_of_run.factors = {1, 0.25};
  Provider provider(model);
  const config::RunConfig config = provider.config();
  EXPECT_EQ(config.model_kind, config::kScriptKind) << "so a Python script may join";
  EXPECT_THAT(config.model_arguments, ElementsAre("--width", "3"));
  const auto inputs = provider.load(config);
  ASSERT_TRUE(inputs);
  EXPECT_EQ(inputs->train->fingerprint(), "8 samples of (float32 [3], int64 []); hash: 17");
  EXPECT_EQ(inputs->test->fingerprint(), "2 samples of (float32 [3], int64 [])") << "without a hash";
  const auto state = provider.initial_state(*inputs);
  ASSERT_TRUE(state);
  ASSERT_EQ(state->weights.size(), 1U);
  EXPECT_EQ(state->weights[0].floats()[2], 0.5F);
  ASSERT_EQ(state->schedule.table->rates.size(), 2U);
  EXPECT_EQ(state->schedule.table->rates[1].lr, 0.125);
  EXPECT_EQ(provider.make(*inputs, "cpu", 1).error().message, "cpu is full");
}

TEST(Provider, WithoutTestSamplesNothingIsEvaluated) {
  OneTensor model;
  model.test = {};
  Provider provider(model);
  EXPECT_FALSE(provider.config().model_tested);
  EXPECT_EQ(provider.load(provider.config())->test, nullptr);
  config::RunConfig heads = provider.config();
  heads.model_tested = true;
  EXPECT_EQ(provider.load(heads).error().code, ErrorCode::mismatch);
}

TEST(Provider, RefusesTheRunOfAnotherModel) {
  OneTensor model;
  model.words = {"--width", "3"};
  Provider provider(model);
  config::RunConfig heads = provider.config();
  heads.model_arguments = {"--width", "4"};
  const auto other_words = provider.load(heads);
  ASSERT_FALSE(other_words);
  EXPECT_EQ(other_words.error().code, ErrorCode::mismatch);
  EXPECT_THAT(other_words.error().message, HasSubstr("'--width 4'"));
  EXPECT_THAT(other_words.error().message, HasSubstr("'--width 3'"));
  heads.model_kind = "softmax";
  EXPECT_EQ(provider.load(heads).error().code, ErrorCode::mismatch);
}

TEST(Provider, RefusesWhatIsNoModel) {
  const auto refused = [](OneTensor& model) {
    Provider provider(model);
    const config::RunConfig config = provider.config();
    const auto inputs = provider.load(config);
    if (!inputs) return inputs.error();
    const auto state = provider.initial_state(*inputs);
    return state ? Error{} : state.error();
  };
  OneTensor more_weights, frozen, no_groups, outside, no_samples;
  more_weights.more_weights = 1;
  frozen.lay({.name = "w", .shape = {3}, .kind = TensorKind::frozen});
  no_groups.optimizer_of_run.groups.clear();
  outside.optimizer_of_run.kind = OptimizerKind::outside;
  no_samples.train.size = 0;
  EXPECT_THAT(refused(more_weights).message, HasSubstr("expected layout().flat_elements()"));
  EXPECT_THAT(refused(frozen).message, HasSubstr("found w"));
  EXPECT_THAT(refused(no_groups).message, HasSubstr("Model::optimizer()"));
  EXPECT_THAT(refused(outside).message, HasSubstr("Model::optimizer()"));
  EXPECT_THAT(refused(no_samples).message, HasSubstr("no samples"));
}

TEST(Join, ReadsTheInvitation) {
  OneTensor model;
  for (const char* invitation : {"", "desktop", "desktop abc", "desktop 12345"})
    EXPECT_EQ(join(model, invitation, {}).error().code, ErrorCode::usage) << invitation;
  EXPECT_EQ(join(model, "motley1.damaged", {}).error().code, ErrorCode::input);
}

}  // namespace
}  // namespace motley::api
