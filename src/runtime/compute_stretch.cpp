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
// Steps of so long are lost with a device that fails.
constexpr std::chrono::seconds kBringEvery{2};

class WholeBatch final : public Stop {
 public:
  WholeBatch(const std::atomic<bool>& stopping, std::uint64_t count) : stopping_(stopping), count_(count) {}
  [[nodiscard]] std::uint64_t limit() const noexcept override { return stopping_ ? 0 : count_; }

 private:
  const std::atomic<bool>& stopping_;
  std::uint64_t count_;
};

}  // namespace

void ComputeThread::lend(engine::StretchOrder order, StretchEvents events) {
  MOTLEY_ASSERT(manners_.duty >= 1);
  {
    const std::lock_guard lock(mutex_);
    stretch_ = Stretch{std::move(order), std::move(events)};  // one that still waits here was given up
    untaken_ = 0;
  }
  arrived_.notify_one();
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
  MOTLEY_ASSERT(prepared_.model != nullptr);
  engine::Soloist soloist(std::move(stretch.order));
  if (Residence* there = prepared_.model->residence()) soloist.settle(*there);
  std::vector<std::uint64_t> indices;
  engine::StretchEnd end{.number = soloist.number(), .failure = {}, .after = {}};
  bool to_bring = false;  // steps were handed out without weights
  Time brought = now();
  while (soloist.more() && may_go_on(soloist.number())) {
    const std::uint64_t epoch = soloist.pass().epoch;
    Result<engine::StretchStep> step = make_step(soloist, indices);
    if (stopping_) return;
    if (!step) {
      end.failure = step.error();
      break;
    }
    to_bring = soloist.resident();
    const bool epoch_over = soloist.more() && soloist.pass().epoch != epoch;  // its weights may be asked for
    if (to_bring && (epoch_over || now() - brought >= kBringEvery)) {
      to_bring = false;
      if (end.failure = bring(soloist, step->after); end.failure) break;
      brought = now();
    }
    {
      const std::lock_guard lock(mutex_);
      ++untaken_;
    }
    stretch.events.step(std::move(*step));
  }
  if (to_bring) {
    std::optional<Error> lost = bring(soloist, end.after);
    if (!end.failure) end.failure = std::move(lost);
  }
  if (soloist.resident()) prepared_.model->residence()->leave();
  stretch.events.ended(std::move(end));
}

std::optional<Error> ComputeThread::bring(const engine::Soloist& soloist, ps::Snapshot& after) {
  Result<ps::Snapshot> found = soloist.bring();
  if (!found) return found.error();
  after = std::move(*found);
  return std::nullopt;
}

Result<engine::StretchStep> ComputeThread::make_step(engine::Soloist& soloist, std::vector<std::uint64_t>& indices) {
  const StepRange pass = soloist.pass();
  indices.resize(pass.count);
  data::SampleOrder(prepared_.seed, pass.epoch, prepared_.train_samples, prepared_.shuffle)
      .fill(pass.order_first, indices);
  const Time started = now();
  while (!soloist.whole()) {
    const engine::Soloist::Part part = soloist.part();
    const Task task{PassKind::train,
                    soloist.version(),
                    std::span(indices).subspan(part.first, part.count),
                    part.first,
                    micro_batch_,
                    prepared_.seed,
                    false,
                    pass.epoch,
                    pass.order_first,
                    soloist.resident(),
                    soloist.state()};
    const Time began = now();
    const Result<Outcome> outcome = compute(task, soloist, soloist, WholeBatch(stopping_, part.count), [] {});
    if (!outcome) return outcome.error();
    if (Status took = soloist.took(*outcome); !took) return took.error();
    learn(*outcome, seconds(now() - began));
  }
  const double took = seconds(now() - started);
  return soloist.finish(took, now());
}

}  // namespace motley::runtime
