// The steps of a round, made one after the other.

#include <limits>
#include <utility>

#include "data/order.h"
#include "runtime/compute_task.h"
#include "runtime/compute_thread.h"
#include "runtime/mailbox.h"

namespace motley::runtime {
namespace {

// All of a step, or nothing more of the round.
class WholeStep final : public Stop {
 public:
  WholeStep(const Stop& round, std::uint64_t done, std::uint64_t count) : round_(round), done_(done), count_(count) {}
  [[nodiscard]] std::uint64_t limit() const noexcept override { return round_.limit() > 0 ? count_ : 0; }
  [[nodiscard]] bool claim(std::uint64_t count) const noexcept override { return round_.claim(done_ + count); }

 private:
  const Stop& round_;
  std::uint64_t done_, count_;
};

}  // namespace

// Empty: the round was given up while they were on their way.
std::vector<SharedBytes> ComputeThread::weights_of_round() {
  std::vector<SharedBytes> base;
  for (const Chunk& chunk : prepared_.model->layout().chunks()) {
    const std::span<const float> weights = weights_.get(static_cast<ChunkId>(base.size()));
    if (weights.size() != chunk.elements) return {};
    base.push_back(SharedBytes::copy_of(std::as_bytes(weights)));
  }
  return base;
}

bool ComputeThread::weights_are_here() const {
  for (ChunkId chunk = 0; chunk < weights_.chunks(); ++chunk)
    if (!weights_.here(chunk)) return false;
  return true;
}

Status ComputeThread::make_local_steps(const engine::TaskOrder& order, TaskSink& sink, const Stop& stop) {
  const Result<bool> overlapped = local_->open_overlapped(order, prepared_.model->device_optimizer());
  if (!overlapped) return overlapped.error();
  if (!*overlapped) {
    std::vector<SharedBytes> base = weights_of_round();
    if (base.empty()) return {};
    if (Status opened = local_->open(order, std::move(base), prepared_.model->device_optimizer()); !opened)
      return opened;
  }
  const std::vector<std::uint64_t> indices =
      data::samples_at(order.spans, prepared_.seed, prepared_.train_samples, prepared_.shuffle);
  while (local_->more() && stop.limit() == order.count) {
    if (local_->waits() && (local_->made_all_overlapped() || weights_are_here())) {
      std::vector<SharedBytes> base = weights_of_round();
      if (base.empty()) return {};
      if (Status rebased = local_->rebase(std::move(base)); !rebased) return rebased;
    }
    const engine::LocalSteps::Part part = local_->part();
    const Task task{
        .indices = std::span(indices).subspan(part.first, part.count),
        .first = order.first,
        .epoch = order.epoch,
        .order_first = order.pass_first + part.first,  // as in a pass of its own, which the next one follows
        .state = order.state};
    const Time began = now();
    loop_->forget_weights();  // steps of workers share their numbers with versions and with each other
    const Result<Outcome> outcome = compute(task, *local_, WholeStep(stop, part.first, part.count));
    if (!outcome) return outcome.error();
    if (outcome->count < part.count) return {};
    if (Status took = local_->took(*outcome); !took) return took;
    learn(*outcome, seconds(now() - began));
    sink.progress(local_->done());
  }
  return local_->more() ? Status() : local_->close();
}

void ComputeThread::run_local_steps(const engine::TaskOrder& order) {
  MOTLEY_ASSERT(prepared_.model != nullptr);
  if (!local_) {
    events_.failed(order.number,
                   {ErrorCode::protocol, "the head granted local steps, and its run says train.mode = exact",
                    "install the same version of motley on both machines"});
    return;
  }
  if (out_) return failed(order.number, *out_);
  // Once: later the device may have the weights of the round to come.
  if (odd_ == 0)
    if (Status believed = try_passes(order.state); !believed) return failed(order.number, believed.error());
  TaskSink sink(*this, order.number);
  const TaskStop stop(*this, sink);
  duty_.start(now());
  const Status made = make_local_steps(order, sink, stop);
  if (DeviceOptimizer* device = prepared_.model->device_optimizer(); device != nullptr && local_->take_settled())
    device->leave();
  loop_->forget_weights();
  duty_.stop(now());
  const double charge = duty_.take_charge();
  const bool diverged = !made && made.error().code == ErrorCode::diverged;
  const bool whole = made && sink.done() == order.count;
  Outcome outcome{.count = whole || diverged ? order.count : 0,
                  .weight = local_->weight(),
                  .loss_sum = local_->loss_sum(),
                  .micro_batch = micro_batch_};
  if (!made && !diverged) {
    local_->drop();
    return failed(order.number, made.error());
  }
  if (outcome.count > 0) {
    // What is not finite is for the coordinator to judge: it asks others.
    const double loss = diverged ? std::numeric_limits<double>::quiet_NaN() : outcome.loss_sum;
    sink.begin(order.count, engine::Begun{outcome.weight, loss, local_->overlapped()});
    std::vector<float> change;
    for (const Chunk& chunk : prepared_.model->layout().chunks()) {
      change.assign(chunk.elements, 0);
      const auto id = static_cast<ChunkId>(&chunk - prepared_.model->layout().chunks().data());
      if (whole) local_->change(id, change);
      sink.ready(id, change);
    }
  }
  if (!whole) local_->drop();
  events_.finished(order.number, outcome, charge, seconds(weights_.waited()));
}

}  // namespace motley::runtime
