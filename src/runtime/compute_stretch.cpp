// Steps made one after the other, without asking.

#include <utility>

#include "base/assert.h"
#include "data/order.h"
#include "runtime/compute_thread.h"
#include "runtime/mailbox.h"

namespace motley::runtime {
namespace {

// Each holds weights, optimizer state and gradient of its own.
constexpr std::uint32_t kStepsUntakenMax = 2;

class WholeBatch final : public Stop {
 public:
  WholeBatch(const std::atomic<bool>& stopping, std::uint64_t count) : stopping_(stopping), count_(count) {}
  [[nodiscard]] std::uint64_t limit() const noexcept override { return stopping_ ? 0 : count_; }

 private:
  const std::atomic<bool>& stopping_;
  std::uint64_t count_;
};

}  // namespace

bool ComputeThread::lend(engine::StretchOrder order, StretchEvents events) {
  if (manners_.share < 1) return false;
  {
    const std::lock_guard lock(mutex_);
    stretch_ = Stretch{std::move(order), std::move(events)};  // one that still waits here was given up
    untaken_ = 0;
  }
  arrived_.notify_one();
  return true;
}

void ComputeThread::cut(std::uint64_t stretch) {
  {
    const std::lock_guard lock(mutex_);
    cut_ = std::max(cut_, stretch);
  }
  arrived_.notify_one();
}

void ComputeThread::taken() {
  {
    const std::lock_guard lock(mutex_);
    if (untaken_ > 0) --untaken_;
  }
  arrived_.notify_one();
}

bool ComputeThread::may_go_on(std::uint64_t stretch) {
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [&] { return stopping_ || cut_ >= stretch || untaken_ < kStepsUntakenMax; });
  return !stopping_ && cut_ < stretch;
}

void ComputeThread::run_stretch(Stretch stretch) {
  MOTLEY_ASSERT(prepared_.computation != nullptr);
  engine::Soloist soloist(std::move(stretch.order));
  std::vector<std::uint64_t> indices;
  std::optional<Error> failure;
  while (!failure && soloist.more() && may_go_on(soloist.number())) {
    Result<engine::StretchStep> step = make_step(soloist, indices);
    if (stopping_) return;
    if (!step) {
      failure = step.error();
      break;
    }
    {
      const std::lock_guard lock(mutex_);
      ++untaken_;
    }
    stretch.events.step(std::move(*step));
  }
  stretch.events.ended(soloist.number(), std::move(failure));
}

Result<engine::StretchStep> ComputeThread::make_step(engine::Soloist& soloist, std::vector<std::uint64_t>& indices) {
  const StepRange pass = soloist.pass();
  indices.resize(pass.count);
  data::SampleOrder(prepared_.seed, pass.epoch, prepared_.train_samples).fill(pass.order_first, indices);
  const Time started = now();
  while (!soloist.whole()) {
    const engine::Soloist::Part part = soloist.part();
    const Task task{PassKind::train, soloist.version(), std::span(indices).subspan(part.first, part.count),
                    part.first,      micro_batch_,      prepared_.seed};
    const Time began = now();
    const Result<Outcome> outcome = compute(task, soloist, soloist, WholeBatch(stopping_, part.count), [] {});
    if (!outcome) return outcome.error();
    if (Status took = soloist.took(*outcome); !took) return took.error();
    learn(*outcome, seconds(now() - began));
  }
  const double took = seconds(now() - started);
  events_.made_step(pass.count, took);
  return soloist.finish(took, now());
}

}  // namespace motley::runtime
