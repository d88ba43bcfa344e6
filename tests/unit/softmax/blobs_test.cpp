#include "softmax/blobs.h"

#include <gtest/gtest.h>

#include <set>

namespace motley::softmax {
namespace {

TEST(Blobs, AreEqualOnEveryMachine) {
  const Blobs train({20, 3, 4}, Part::train);
  EXPECT_EQ(train.fingerprint(), "20 samples f32 [3], 4 classes, content d6dd2238b11cffbf");
  EXPECT_EQ(Blobs({20, 3, 4}, Part::train).fingerprint(), train.fingerprint());
  EXPECT_NE(Blobs({20, 3, 4}, Part::test).fingerprint(), train.fingerprint());
}

TEST(Blobs, HaveEveryClassWhereThereIsRoom) {
  const Blobs samples({5, 2, 4}, Part::train);
  EXPECT_EQ(samples.size(), 5U);
  std::set<std::uint64_t> labels;
  for (std::uint64_t i = 0; i < samples.size(); ++i) {
    EXPECT_EQ(samples.sample(i).size(), 2U);
    labels.insert(samples.label(i));
  }
  EXPECT_EQ(labels, (std::set<std::uint64_t>{0, 1, 2, 3}));
  EXPECT_EQ(Blobs({2, 2, 4}, Part::train).classes(), 4U);
}

TEST(Blobs, OfAPartHaveTheCentresOfTheOther) {
  constexpr std::uint64_t kSamples = 4000;
  const auto mean = [](Part part) {
    const Blobs samples({kSamples, 1, 1}, part);
    double sum = 0;
    for (std::uint64_t i = 0; i < kSamples; ++i) sum += samples.sample(i)[0];
    return sum / kSamples;
  };
  EXPECT_NEAR(mean(Part::train), mean(Part::test), 0.1);
}

}  // namespace
}  // namespace motley::softmax
