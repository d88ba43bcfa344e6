#include "engine/local/local_steps.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/assert.h"

namespace motley::engine {

Status LocalSteps::begin_anew(const std::vector<SharedBytes>& base) {
  ps::OptimizerSpec optimizer = rules_.optimizer;
  if (optimizer.kind == OptimizerKind::outside) {
    Result<std::shared_ptr<ps::OutsideOptimizer>> made = rules_.outside();
    if (!made) return made.error();
    optimizer.outside = std::move(*made);
  }
  Result<ps::Server> made = ps::Server::make(layout_, std::move(optimizer), rules_.schedule, rules_.clip_norm,
                                             {.version = 0, .weights = base, .optimizer = {}});
  if (!made) return made.error();
  server_ = std::make_shared<ps::Server>(std::move(*made));
  return {};
}

std::uint64_t LocalSteps::first_step(const TaskOrder& order) const noexcept {
  const std::uint64_t per_epoch = (rules_.samples + rules_.batch - 1) / rules_.batch;
  return order.epoch * per_epoch + order.pass_first / rules_.batch;
}

Status LocalSteps::open(const TaskOrder& order, std::vector<SharedBytes> base, DeviceOptimizer* device) {
  MOTLEY_ASSERT(order.local_steps > 0 && order.count > 0);
  const std::uint64_t first = first_step(order);
  const bool anew = !server_ || first < began_at_;  // a run that went back knows nothing of what this remembers
  if (anew) {
    if (Status begun = begin_anew(base); !begun) return begun;
    began_at_ = first;
  }
  if (Status done = server_->rebase(first, base, anew); !done) return done;
  base_ = std::move(base);
  from_.clear();
  begin_round(order, device);
  return {};
}

Result<bool> LocalSteps::open_overlapped(const TaskOrder& order, DeviceOptimizer* device) {
  MOTLEY_ASSERT(order.local_steps > 0 && order.count > 0);
  if (order.overlapped == 0 || !server_ || !closed_ || *closed_ + 1 != order.version) return false;
  from_ = weights();
  if (Status done = server_->rebase(first_step(order), from_, false); !done) return done.error();
  base_.clear();
  begin_round(order, device);
  overlapped_ = order.overlapped;
  return true;
}

void LocalSteps::begin_round(const TaskOrder& order, DeviceOptimizer* device) {
  begin_steps();
  settled_ = settle(device);
  closed_.reset();
  version_ = order.version;
  steps_ = order.local_steps;
  count_ = order.count;
  made_ = done_ = overlapped_ = made_overlapped_ = 0;
  weight_ = loss_sum_ = 0;
}

std::vector<SharedBytes> LocalSteps::weights() const {
  std::vector<SharedBytes> all;
  for (ChunkId chunk = 0; chunk < layout_.chunks().size(); ++chunk) all.push_back(server_->weights(chunk));
  return all;
}

Status LocalSteps::rebase(std::vector<SharedBytes> base) {
  MOTLEY_ASSERT(waits() && !begun_ && base.size() == from_.size());
  DeviceOptimizer* device = device_;
  if (Status here = offload(); !here) return here;
  if (device != nullptr) device->leave();
  std::vector<SharedBytes> moved;
  for (ChunkId chunk = 0; chunk < base.size(); ++chunk) {
    const SharedBytes made = server_->weights(chunk);
    const std::span<const float> to = made.floats(), from = from_[chunk].floats(), onto = base[chunk].floats();
    MOTLEY_ASSERT(to.size() == from.size() && onto.size() == from.size());
    std::vector<float> sum(onto.size());
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = onto[i] + (to[i] - from[i]);
    moved.push_back(SharedBytes::copy_of(std::as_bytes(std::span(sum))));
  }
  if (Status done = server_->rebase(server_->version(), std::move(moved), false); !done) return done;
  settled_ = settle(device);
  made_overlapped_ = made_;
  base_ = std::move(base);
  from_.clear();
  return {};
}

// What is short of a group comes after a whole one: alone it might be a single sample.
std::uint64_t LocalSteps::cut(std::uint64_t step) const noexcept {
  if (step >= steps_) return count_;
  const std::uint64_t most = count_ - std::min(count_, rules_.grain);
  return std::min(count_ * step / steps_, most) / rules_.grain * rules_.grain;
}

std::uint64_t LocalSteps::next_step() const noexcept {
  std::uint64_t step = made_;
  while (cut(step + 1) == done_) ++step;
  return step;
}

LocalSteps::Part LocalSteps::part() const noexcept { return {done_, cut(next_step() + 1) - done_}; }

Status LocalSteps::took(const Outcome& outcome) {
  const std::uint64_t count = samples();
  if (Status came = whole(outcome); !came) return came;
  if (Status updated = update(); !updated) return updated;
  weight_ += step_weight_;
  loss_sum_ += step_loss_;
  done_ += count;
  while (made_ < steps_ && cut(made_ + 1) <= done_) ++made_;
  return {};
}

Status LocalSteps::close() {
  MOTLEY_ASSERT(!more() && !waits());
  if (Status here = offload(); !here) return here;
  closed_ = version_;
  return {};
}

Status LocalSteps::offload() {
  if (!resident()) return {};
  const Result<ps::Snapshot> found = download();
  device_ = nullptr;
  if (!found) return found.error();
  server_->adopt(*found);
  return {};
}

// In the middle of a step the server is of no use.
void LocalSteps::drop() {
  device_ = nullptr;
  if (begun_) server_.reset();
  begun_ = false;
  closed_.reset();
  base_.clear();
  from_.clear();
}

void LocalSteps::change(ChunkId chunk, std::span<float> out) const {
  const std::span<const float> from = base_[chunk].floats();
  const SharedBytes weights = server_->weights(chunk);
  const std::span<const float> to = weights.floats();
  MOTLEY_ASSERT(out.size() == from.size() && to.size() == from.size());
  const auto weight = static_cast<float>(weight_);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = weight * (from[i] - to[i]);
}

}  // namespace motley::engine
