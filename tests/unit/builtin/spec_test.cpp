#include "builtin/spec.h"

#include <gtest/gtest.h>

#include "data/dataset.h"

namespace motley::builtin {
namespace {

ModelSpec spec_of(const std::string& kind, std::vector<std::int64_t> shape, std::uint64_t outputs) {
  ModelSpec spec;
  spec.kind = kind;
  spec.sample_shape = std::move(shape);
  spec.outputs = outputs;
  return spec;
}

TEST(SpecTest, TheFirstRuleThatMatchesANameGivesItsGroup) {
  ModelSpec spec;
  spec.groups = {{"*.ln_?.weight", 2}, {"*.weight", 1}};
  EXPECT_EQ(group_of(spec, "h.0.ln_1.weight"), 2U);
  EXPECT_EQ(group_of(spec, "h.0.ln_12.weight"), 1U);
  EXPECT_EQ(group_of(spec, "h.0.bias"), 0U);
  EXPECT_EQ(group_of(ModelSpec(), "h.0.bias"), 0U);
}

TEST(SpecTest, SamplesWithManyTargetsGoInSmallerMicroBatches) {
  ModelSpec spec;
  EXPECT_EQ(micro_batch(spec, false), 256U);
  EXPECT_EQ(micro_batch(spec, true), 2048U);
  spec.targets = 256;
  EXPECT_EQ(micro_batch(spec, false), 16U);
  spec.targets = 1 << 20;
  EXPECT_EQ(micro_batch(spec, true), 1U);
}

TEST(SpecTest, WhatNoModelHasIsNamed) {
  const auto code = [](const ModelSpec& spec) {
    const Status fits = check_sizes(spec);
    return fits ? std::string() : std::string(to_word(fits.error().code));
  };
  EXPECT_EQ(code(spec_of("fashion-cnn", {1, 28, 28}, 10)), "");
  EXPECT_EQ(code(spec_of("mnist-cnn", {28, 28}, 10)), "");
  EXPECT_EQ(code(spec_of("fashion-cnn", {1, 28, 28}, 11)), "mismatch");
  EXPECT_EQ(code(spec_of("fashion-cnn", {784}, 10)), "mismatch");
  EXPECT_EQ(code(spec_of("mlp", {32}, 10)), "");
  EXPECT_EQ(code(spec_of("mlp", {32}, 0)), "input");
  EXPECT_EQ(code(spec_of("mlp", {0}, 10)), "input");
  EXPECT_EQ(code(spec_of("cnn", {1, 28, 28}, 10)), "usage");
  ModelSpec gpt = spec_of("gpt-mini", {256}, 256);
  gpt.targets = 256;
  EXPECT_EQ(code(gpt), "");
  gpt.gpt.heads = 5;
  EXPECT_EQ(code(gpt), "input");
  gpt.gpt = {.block = 128};
  EXPECT_EQ(code(gpt), "mismatch");
}

TEST(SpecTest, DataOfAnotherShapeOrKindAreRefused) {
  const auto set = data::open_dataset("synthetic:64:32:10", "train", {});
  ASSERT_TRUE(set.ok());
  ModelSpec spec = spec_of("mlp", {32}, 10);
  EXPECT_TRUE(check_data(spec, **set, "training").ok());
  spec.outputs = 9;
  EXPECT_EQ(check_data(spec, **set, "test").error().code, ErrorCode::mismatch);
  spec.outputs = 10;
  spec.targets = 2;
  EXPECT_FALSE(check_data(spec, **set, "test").ok());
  spec.targets = 1;
  spec.sample_shape = {31};
  EXPECT_FALSE(check_data(spec, **set, "test").ok());
  spec.sample_shape = {32};
  spec.loss = "mse";
  EXPECT_FALSE(check_data(spec, **set, "test").ok());
  spec.loss = "hinge";
  EXPECT_EQ(check_data(spec, **set, "test").error().code, ErrorCode::usage);
}

}  // namespace
}  // namespace motley::builtin
