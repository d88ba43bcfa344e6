// Steps made one after the other, without asking.

#include <chrono>
#include <future>
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
constexpr std::chrono::seconds kDownloadEvery{2};

class WholeBatch final : public Stop {
 public:
  WholeBatch(const std::atomic<bool>& stopping, std::uint64_t count) : stopping_(stopping), count_(count) {}
  [[nodiscard]] std::uint64_t limit() const noexcept override { return stopping_ ? 0 : count_; }

 private:
  const std::atomic<bool>& stopping_;
  std::uint64_t count_;
};

/// A step whose weights are on their way from the device, and those that were made since: they are handed out when it
/// has them.
class OnTheWay {
 public:
  explicit OnTheWay(std::function<void(engine::DelegatedStep)> hand_out) : hand_out_(std::move(hand_out)) {}

  [[nodiscard]] bool any() const noexcept { return !steps_.empty(); }
  [[nodiscard]] bool came() const { return coming_.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }
  void begin(std::function<Result<ps::Snapshot>()> download, engine::DelegatedStep step) {
    coming_ = std::async(std::launch::async, std::move(download));
    steps_.push_back(std::move(step));
  }
  void add(engine::DelegatedStep step) { steps_.push_back(std::move(step)); }
  /// Waits for the weights. Errors: the device's; then these steps are lost.
  Status finish() {
    Result<ps::Snapshot> found = coming_.get();
    std::vector<engine::DelegatedStep> steps = std::exchange(steps_, {});
    if (!found) return found.error();
    steps.front().after = std::move(*found);
    for (engine::DelegatedStep& step : steps) hand_out_(std::move(step));
    return {};
  }

 private:
  std::function<void(engine::DelegatedStep)> hand_out_;
  std::future<Result<ps::Snapshot>> coming_;
  std::vector<engine::DelegatedStep> steps_;
};

}  // namespace

void ComputeThread::delegate(engine::DelegatedSteps order, DelegatedStepEvents events) {
  MOTLEY_ASSERT(resource_policy_.duty >= 1);
  {
    const std::lock_guard lock(mutex_);
    delegation_ = Delegation{std::move(order), std::move(events)};  // one that still waits here was given up
    untaken_ = 0;
  }
  arrived_.notify_one();
}

void ComputeThread::cut(std::uint64_t delegation) {
  {
    const std::lock_guard lock(mutex_);
    cut_ = std::max(cut_, delegation);
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

bool ComputeThread::may_go_on(std::uint64_t delegation) {
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [&] { return stopping_ || cut_ >= delegation || untaken_ < kStepsUntakenMax; });
  return !stopping_ && cut_ < delegation;
}

void ComputeThread::run_delegation(Delegation delegation) {
  MOTLEY_ASSERT(prepared_.model != nullptr);
  engine::Soloist soloist(std::move(delegation.order));
  engine::DelegationEnd end{.number = soloist.number(), .failure = {}, .after = {}};
  if (Status believed = out_ ? Status(*out_) : try_passes(soloist.state()); !believed) {
    end.failure = believed.error();
    delegation.events.ended(std::move(end));
    if (out_ && events_.out) events_.out(*out_);
    return;
  }
  soloist.settle(prepared_.model->device_optimizer());
  std::vector<std::uint64_t> indices;
  const auto hand_out = [&](engine::DelegatedStep step) {
    {
      const std::lock_guard lock(mutex_);
      ++untaken_;
    }
    delegation.events.step(std::move(step));
  };
  OnTheWay on_the_way(hand_out);
  bool to_download = false;  // steps were made whose weights are not on their way
  Time downloaded = now();
  while (!end.failure && soloist.more() && may_go_on(soloist.number())) {
    const std::uint64_t epoch = soloist.pass().epoch;
    Result<engine::DelegatedStep> step = make_step(soloist, indices);
    if (stopping_) return;
    if (!step) {
      end.failure = step.error();
      break;
    }
    to_download = soloist.resident();
    const bool epoch_over = soloist.more() && soloist.pass().epoch != epoch;  // its weights may be asked for
    if (on_the_way.any() && (epoch_over || on_the_way.came())) {
      if (Status came = on_the_way.finish(); !came) {
        end.failure = came.error();
        to_download = false;
        break;
      }
    }
    if (on_the_way.any()) {
      on_the_way.add(std::move(*step));
    } else if (to_download && (epoch_over || now() - downloaded >= kDownloadEvery)) {
      to_download = false;
      if (auto download_in_background = soloist.download_in_background()) {
        on_the_way.begin(std::move(download_in_background), std::move(*step));
      } else if (end.failure = download(soloist, step->after); !end.failure) {
        hand_out(std::move(*step));
      }
      downloaded = now();
    } else {
      hand_out(std::move(*step));
    }
  }
  if (on_the_way.any()) {
    if (Status came = on_the_way.finish(); !came) {
      if (!end.failure) end.failure = came.error();
      to_download = false;
    }
  }
  if (to_download) {
    std::optional<Error> lost = download(soloist, end.after);
    if (!end.failure) end.failure = std::move(lost);
  }
  if (soloist.resident()) prepared_.model->device_optimizer()->leave();
  delegation.events.ended(std::move(end));
  if (out_ && events_.out) events_.out(*out_);
}

std::optional<Error> ComputeThread::download(const engine::LocalTrainer& trainer, ps::Snapshot& after) {
  Result<ps::Snapshot> found = trainer.download();
  if (!found) return found.error();
  after = std::move(*found);
  return std::nullopt;
}

Result<engine::DelegatedStep> ComputeThread::make_step(engine::Soloist& soloist, std::vector<std::uint64_t>& indices) {
  const StepRange pass = soloist.pass();
  indices.resize(pass.count);
  data::SampleOrder(prepared_.seed, pass.epoch, prepared_.train_samples, prepared_.shuffle)
      .fill(pass.order_first, indices);
  const Time started = now();
  const Task task{.indices = indices, .epoch = pass.epoch, .order_first = pass.order_first, .state = soloist.state()};
  const Result<Outcome> outcome = compute(task, soloist, WholeBatch(stopping_, pass.count));
  if (!outcome) return outcome.error();
  if (Status took = soloist.took(*outcome); !took) return took.error();
  const double took = seconds(now() - started);
  learn(*outcome, took);
  return soloist.finish(took, now());
}

}  // namespace motley::runtime
