#include "report/curve.h"

#include <gtest/gtest.h>

#include <cmath>

namespace motley::report {
namespace {

TEST(Curve, KeepsEachValueWhileThereIsRoom) {
  Curve curve;
  curve.add(3, 2.5);
  curve.add(4, 1.5);
  ASSERT_EQ(curve.buckets().size(), 2U);
  EXPECT_EQ(curve.buckets()[1], (Curve::Bucket{4, 4, 1, 1.5, 1.5, 1.5, 1.5, 1.5}));
}

TEST(Curve, StaysBoundedAndLosesNoPeak) {
  Curve curve;
  constexpr std::uint64_t kSteps = 1'000'000, kPeak = 123'456;
  for (std::uint64_t step = 0; step < kSteps; ++step) curve.add(step, step == kPeak ? 1e6 : 1);
  EXPECT_LE(curve.buckets().size(), Curve::kBucketsMax);
  EXPECT_GE(curve.buckets().size(), Curve::kBucketsMax / 2);
  std::uint64_t next = 0, peaks = 0;
  for (const Curve::Bucket& bucket : curve.buckets()) {
    EXPECT_EQ(bucket.first_step, next);
    EXPECT_EQ(bucket.count, bucket.last_step - bucket.first_step + 1);
    next = bucket.last_step + 1;
    peaks += bucket.greatest == 1e6 ? 1 : 0;
    EXPECT_EQ(bucket.least, 1);
  }
  EXPECT_EQ(next, kSteps);
  EXPECT_EQ(peaks, 1U);
}

TEST(Curve, NotANumberHidesNoOtherValue) {
  Curve curve;
  for (std::uint64_t step = 0; step <= Curve::kBucketsMax; ++step) curve.add(step, step % 2 == 0 ? std::nan("") : 7);
  const Curve::Bucket& merged = curve.buckets()[0];
  EXPECT_EQ(merged.count, 2U);
  EXPECT_EQ(merged.least, 7);
  EXPECT_EQ(merged.greatest, 7);
  EXPECT_TRUE(std::isnan(merged.mean()));
}

}  // namespace
}  // namespace motley::report
