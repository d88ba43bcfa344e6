#include "report/curve.h"

#include <cmath>

namespace motley::report {
namespace {

void merge(Curve::Bucket& into, const Curve::Bucket& later) {
  into.last_step = later.last_step;
  into.count += later.count;
  into.least = std::fmin(into.least, later.least);  // the other one where one is not a number
  into.greatest = std::fmax(into.greatest, later.greatest);
  into.last = later.last;
  into.sum += later.sum;
}

}  // namespace

void Curve::add(std::uint64_t step, double value) {
  const Bucket one{step, step, 1, value, value, value, value, value};
  if (!buckets_.empty() && buckets_.back().count < per_bucket_) return merge(buckets_.back(), one);
  if (buckets_.size() == kBucketsMax) {
    for (std::size_t i = 0; i < kBucketsMax / 2; ++i) {
      buckets_[i] = buckets_[2 * i];
      merge(buckets_[i], buckets_[2 * i + 1]);
    }
    buckets_.resize(kBucketsMax / 2);
    per_bucket_ *= 2;
  }
  buckets_.push_back(one);
}

}  // namespace motley::report
