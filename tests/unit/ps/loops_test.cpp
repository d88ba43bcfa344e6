// The loops of every instruction set: the same bits, whatever the processor.

#include "ps/loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/philox.h"

namespace motley::ps {
namespace {

constexpr std::size_t kSizes[] = {1, 7, 64, 255, 4096, 4099};

std::vector<float> numbers(std::size_t count, std::uint64_t seed, bool negative = true) {
  Philox random(seed);
  std::vector<float> values(count);
  for (float& value : values) {
    const double size = std::exp2(40 * random.uniform() - 30);  // from 1e-9 to 1e3
    value = static_cast<float>(negative && random.uniform() < 0.5 ? -size : size);
  }
  return values;
}

class EverySet : public testing::TestWithParam<std::size_t> {
 protected:
  std::size_t count = GetParam();
  std::vector<float> weights = numbers(count, 1), gradient = numbers(count, 2), mean = numbers(count, 3);
  std::vector<float> square = numbers(count, 4, false);

  using Outputs = std::vector<std::vector<float>>;
  template <class Run>
  void expect_same_bits(Run run) {
    const Outputs portable = run(kPortable);
    for (const Loops* set : loops()) {
      SCOPED_TRACE(set->name);
      const Outputs found = run(*set);
      for (std::size_t i = 0; i < portable.size(); ++i)
        EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(found[i])), std::as_bytes(std::span(portable[i])))) << i;
    }
  }
  void expect_same_update(const GroupSpec& group, OptimizerKind kind) {
    const StepScalars scalars = step_scalars(kind, group, 0.01, 6);
    const auto update = [&](const Loops& set, const float* old_mean, const float* old_square, const float* from,
                            Outputs& out) {
      if (kind != OptimizerKind::sgd) {
        set.adam({count, weights.data(), old_mean, old_square, from, out[0].data(), out[1].data(), out[2].data()},
                 scalars);
      } else if (group.momentum != 0) {
        set.sgd_momentum({count, weights.data(), old_mean, from, out[0].data(), out[1].data()}, scalars);
      } else {
        set.sgd({count, weights.data(), nullptr, from, out[0].data(), nullptr}, scalars);
      }
    };
    const bool adam = kind != OptimizerKind::sgd;
    const bool momentum = adam || group.momentum != 0;
    expect_same_bits([&](const Loops& set) {
      Outputs out(3, std::vector<float>(count));
      update(set, mean.data(), square.data(), gradient.data(), out);
      Outputs in_place{gradient, mean, square};
      update(set, in_place[1].data(), in_place[2].data(), in_place[0].data(), in_place);
      EXPECT_EQ(in_place[0], out[0]);
      EXPECT_EQ(in_place[1], momentum ? out[1] : mean);
      EXPECT_EQ(in_place[2], adam ? out[2] : square);
      return out;
    });
  }
};

INSTANTIATE_TEST_SUITE_P(Sizes, EverySet, testing::ValuesIn(kSizes));

TEST_P(EverySet, UpdatesWithAdam) {
  GroupSpec group;
  expect_same_update(group, OptimizerKind::adamw);
  group.weight_decay = 0.1;
  expect_same_update(group, OptimizerKind::adam);
  group.beta1 = 0.3;  // nearer to the gradient
  expect_same_update(group, OptimizerKind::adam);
}

TEST_P(EverySet, UpdatesWithSgd) {
  GroupSpec group;
  group.momentum = 0;
  group.weight_decay = 0.1;
  expect_same_update(group, OptimizerKind::sgd);
  group.momentum = 0.9;
  expect_same_update(group, OptimizerKind::sgd);
  group.nesterov = true;
  expect_same_update(group, OptimizerKind::sgd);
}

TEST_P(EverySet, ScalesAndDivides) {
  expect_same_bits([&](const Loops& set) {
    Outputs out{gradient, gradient};
    set.scale(out[0].data(), count, 0.3F);
    set.divide(out[1].data(), count, 7);
    return out;
  });
}

TEST_P(EverySet, SumsSquares) {
  for (const Loops* set : loops()) {
    SCOPED_TRACE(set->name);
    EXPECT_EQ(set->squares(gradient.data(), count), kPortable.squares(gradient.data(), count));
    EXPECT_EQ(set->short_squares(gradient.data(), count), kPortable.short_squares(gradient.data(), count));
  }
}

}  // namespace
}  // namespace motley::ps
