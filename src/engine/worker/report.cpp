#include "engine/worker/report.h"

#include "base/assert.h"
#include "engine/probes.h"

namespace motley::engine {
namespace {

constexpr std::uint32_t kWarmUpTasks = 2;
constexpr std::uint32_t kSpeedRecordsMin = 10;

/// The first of the `count` positions of a lease that are done.
std::uint64_t first_done(const wire::Grant& lease, std::uint64_t count) noexcept {
  return lease.from_end ? lease.first + lease.count - count : lease.first;
}

}  // namespace

void TaskReport::started(std::size_t chunks, Time now) {
  sent_.assign(chunks, false);
  missing_ = chunks;
  last_.reset();
  wait_seconds_ = seconds(now - idle_since_);
}

bool TaskReport::chunk(ChunkId chunk, const SharedBytes& gradient) {
  MOTLEY_ASSERT(chunk < sent_.size() && !sent_[chunk]);
  sent_[chunk] = true;
  if (--missing_ > 0) return true;
  last_.emplace(chunk, gradient);
  return false;
}

void TaskReport::finished(const Outcome& outcome, double compute_seconds, double waited_seconds, bool learns,
                          Time now) {
  if (learns) learn(outcome.count, compute_seconds);
  outcome_ = outcome;
  compute_seconds_ = compute_seconds;
  wait_seconds_ += waited_seconds;
  idle_since_ = now;
}

void TaskReport::made_step(std::uint64_t samples, double compute_seconds, Time now) {
  learn(samples, compute_seconds);
  idle_since_ = now;
}

void TaskReport::learn(std::uint64_t samples, double compute_seconds) {
  if (records_++ >= kWarmUpTasks) model_.record(samples, compute_seconds);
}

wire::Begin TaskReport::begin(const wire::Grant& lease, std::uint64_t count) const {
  return {lease.pass, lease.lease, first_done(lease, count), count, begun_.weight, begun_.loss_sum, begun_.overlapped};
}

wire::Finish TaskReport::finish(const wire::Grant& lease, std::uint64_t count) const {
  wire::Finish finish;
  finish.pass = lease.pass;
  finish.lease = lease.lease;
  finish.first = first_done(lease, count);
  finish.count = count;
  if (count == 0) return finish;
  finish.correct = outcome_.correct;
  finish.weight = outcome_.weight;
  finish.loss_sum = outcome_.loss_sum;
  finish.compute_seconds = compute_seconds_;
  finish.wait_seconds = wait_seconds_;
  finish.micro_batch = outcome_.micro_batch;
  finish.scores = outcome_.scores;
  finish.probe = probe_bytes(outcome_.probe);
  return finish;
}

std::optional<plan::Affine> TaskReport::speed() const {
  return records_ < kSpeedRecordsMin ? std::nullopt : model_.affine();
}

}  // namespace motley::engine
