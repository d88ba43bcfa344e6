#include "runtime/compute_thread.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/assert.h"
#include "base/thread_name.h"
#include "compute/probe.h"
#include "data/order.h"
#include "machine/spare_memory.h"
#include "machine/thread_priority.h"
#include "runtime/compute_task.h"
#include "runtime/mailbox.h"

namespace motley::runtime {
namespace {

// What a first sample is computed with, before there are weights: its memory is that of any other.
class ZeroWeights final : public Weights {
 public:
  explicit ZeroWeights(const Layout& layout) : layout_(layout) {
    std::size_t longest = 0;
    for (const Chunk& chunk : layout.chunks()) longest = std::max<std::size_t>(longest, chunk.elements);
    zeros_.resize(longest);
  }
  std::span<const float> get(ChunkId chunk) override { return {zeros_.data(), layout_.chunks()[chunk].elements}; }

 private:
  const Layout& layout_;
  std::vector<float> zeros_;
};

class NoSink final : public Sink {
 public:
  void progress(std::uint64_t) noexcept override {}
  void begin(std::uint64_t, double, double) noexcept override {}
  void ready(ChunkId, std::span<const float>) noexcept override {}
};

// How often to look whether others want the memory. It takes a fraction of a millisecond.
constexpr Duration kMemoryEvery = std::chrono::seconds(1);
constexpr Duration kWorthTiming = std::chrono::milliseconds(5);  // what is shorter measures the start

std::uint64_t less(std::uint64_t a, std::uint64_t b) noexcept { return a > b ? a - b : 0; }

}  // namespace

ComputeThread::ComputeThread(ComputeEvents events, ResourcePolicy resource_policy)
    : events_(std::move(events)),
      resource_policy_(resource_policy),
      duty_(resource_policy.duty),
      thread_([this] { loop(); }) {
  MOTLEY_ASSERT(resource_policy.duty > 0 && resource_policy.duty <= 1);
}

ComputeThread::~ComputeThread() { stop(); }

void ComputeThread::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    range_.set_limit(0);
    weights_.abandon();
  }
  arrived_.notify_one();
  thread_.join();
}

void ComputeThread::prepare(std::function<Result<Prepared>()> build, std::function<void(Result<const Layout*>)> done) {
  {
    const std::lock_guard lock(mutex_);
    preparation_ = [this, build = std::move(build), done = std::move(done)] {
      Result<Prepared> prepared = build();
      if (!prepared) {
        done(prepared.error());
        return;
      }
      loop_.reset();
      local_.reset();
      prepared_ = std::move(*prepared);
      loop_.emplace(*prepared_.model);
      if (prepared_.local_steps) local_.emplace(prepared_.model->layout(), *prepared_.local_steps);
      if (Status fits = find_micro_batch(); !fits) {
        done(fits.error());
        return;
      }
      {
        const std::lock_guard known(mutex_);
        server_ = prepared_.model->server();
      }
      done(&prepared_.model->layout());
    };
  }
  arrived_.notify_one();
}

void ComputeThread::start(engine::TaskOrder order) {
  {
    const std::lock_guard lock(mutex_);
    MOTLEY_ASSERT(!next_.has_value());
    current_task_ = order.number;
    range_.reset(order.limit);
    weights_.reset(std::move(order.weights));
    if (stopping_) weights_.abandon();
    next_ = std::move(order);
  }
  arrived_.notify_one();
}

void ComputeThread::arrived(std::uint64_t task, ChunkId chunk, SharedBytes weights) {
  const std::lock_guard lock(mutex_);
  if (current_task_ == task) weights_.arrived(chunk, std::move(weights));
}

std::uint64_t ComputeThread::limit(std::uint64_t task, std::uint64_t count) {
  const std::lock_guard lock(mutex_);
  if (current_task_ != task) return 0;
  const std::uint64_t holds = range_.set_limit(count);
  if (count == 0) weights_.abandon();
  arrived_.notify_one();
  return holds;
}

void ComputeThread::finish_early(std::uint64_t task) {
  const std::lock_guard lock(mutex_);
  if (current_task_ != task) return;
  range_.finish_early();
  arrived_.notify_one();
}

// Until the device has rested for what it did, or the task is to end with what is done.
void ComputeThread::rest(const TaskSink& sink) {
  duty_.stop(now());
  std::unique_lock lock(mutex_);
  if (!range_.frozen())
    arrived_.wait_for(lock, duty_.owed(), [&] { return stopping_ || range_.limit() <= sink.done(); });
  duty_.start(now());
}

void ComputeThread::when_idle(std::function<void()> idle) {
  {
    const std::lock_guard lock(mutex_);
    if (busy_ || waiting()) return idle_.push_back(std::move(idle));
  }
  idle();
}

void ComputeThread::tell_idle() {
  std::vector<std::function<void()>> told;
  {
    const std::lock_guard lock(mutex_);
    busy_ = false;
    if (!waiting()) told.swap(idle_);
  }
  for (const std::function<void()>& idle : told) idle();
}

void ComputeThread::loop() {
  name_thread("motley-compute");
  if (resource_policy_.nice > 0) machine::be_nice(resource_policy_.nice);
  for (;;) {
    std::optional<engine::TaskOrder> order;
    std::function<void()> preparation;
    std::optional<Delegation> delegation;
    tell_idle();
    {
      std::unique_lock lock(mutex_);
      arrived_.wait(lock, [this] { return stopping_ || waiting(); });
      if (stopping_) return;
      busy_ = true;
      preparation = std::move(preparation_);
      preparation_ = nullptr;
      order = std::move(next_);
      next_.reset();
      delegation = std::move(delegation_);
      delegation_.reset();
    }
    if (preparation) preparation();
    if (order) order->local_steps > 0 ? run_local_steps(*order) : run(*order);
    if (delegation) run_delegation(std::move(*delegation));
  }
}

// Computes some samples and drops the result. The memory it took.
Result<MemoryUse> ComputeThread::try_samples(std::uint64_t count) {
  std::vector<std::uint64_t> indices(std::min(count, prepared_.train_samples));
  std::iota(indices.begin(), indices.end(), 0);
  ZeroWeights weights(prepared_.model->layout());
  NoSink sink;
  const Task task{PassKind::calibrate, 0, indices, 0, static_cast<std::uint32_t>(count), prepared_.seed};
  const Result<Outcome> outcome = loop_->run(task, weights, sink, NoStop());
  const MemoryUse use = prepared_.model->memory(prepared_.reserve_bytes);
  memory_asked_ = now();
  if (!outcome && outcome.error().code != ErrorCode::memory) return outcome.error();
  const std::uint64_t budget = less(use.budget, prepared_.reserve_bytes);
  if (outcome && use.peak <= budget) return use;
  return Error{ErrorCode::memory,
               "the memory of " + prepared_.model->capabilities().device + " is too small for this model: expected " +
                   machine::mebibytes(use.peak + prepared_.reserve_bytes) + (outcome ? "" : " and more") +
                   " to compute " + (count == 1 ? "one sample" : std::to_string(count) + " samples at once") +
                   ", found " + machine::mebibytes(use.budget),
               "use a smaller model, close other programs, or train on a machine with more memory"};
}

// One sample (or group of them) tells whether there is room at all, and how much is left for more. The search counts
// groups.
Status ComputeThread::find_micro_batch() {
  const std::uint32_t most = prepared_.micro_batch;
  micro_batch_ = most_ = most;
  odd_ = 0;
  passes_tried_ = false;
  search_.reset();
  const MemoryUse before = prepared_.model->memory(prepared_.reserve_bytes);
  if (before.budget == 0) return {};
  const std::uint32_t least = prepared_.group;
  Result<MemoryUse> one = try_samples(least);
  if (!one && one.error().code == ErrorCode::memory && prepared_.model->device_optimizer() != nullptr) {
    prepared_.reserve_bytes = 0;  // the optimizer stays on the host, then
    one = try_samples(least);
  }
  // What else fails, without weights that make sense, a task will show.
  if (!one) return one.error().code == ErrorCode::memory ? Status(one.error()) : Status();
  const std::uint32_t groups = most / least;
  if ((least > 1 && groups == 1) || prepared_.model->care().any()) return {};
  search_.emplace(groups, before.used, less(one->budget, prepared_.reserve_bytes + one->scratch));
  search_->saw(1, one->peak);
  if (!search_->fits(groups)) {
    // What comes once is told from what comes with each sample by a second size.
    const std::uint32_t two = std::min(groups, 2U);
    const Result<MemoryUse> use = try_samples(std::uint64_t{two} * least);
    if (use) search_->saw(two, use->peak);
  }
  if (prepared_.chosen_micro_batch && search_->fits(groups)) {
    search_.reset();
    return {};
  }
  search_->ran({1, one->peak, one->budget, 0});
  micro_batch_ = search_->size() * least;
  return {};
}

void ComputeThread::learn(const Outcome& outcome, double took) {
  if (odd_ > 0) watch_pace(outcome, took);
  if (odd_ > 0 && now() - grown_asked_ >= kMemoryEvery) watch_memory();
  const bool growing = search_ && search_->growing();
  if (!growing && now() - memory_asked_ < kMemoryEvery) return;
  memory_asked_ = now();
  const MemoryUse memory = prepared_.model->memory(prepared_.reserve_bytes);
  if (!search_ || outcome.count == 0) return;
  const auto samples = static_cast<std::uint32_t>(std::min<std::uint64_t>(micro_batch_, outcome.count));
  const double per_sample = took < seconds(kWorthTiming) ? 0 : took / static_cast<double>(outcome.count);
  const std::uint32_t groups = (samples + prepared_.group - 1) / prepared_.group;
  search_->ran({groups, memory.peak, memory.budget, per_sample});
  micro_batch_ = search_->size() * prepared_.group;
}

bool ComputeThread::take_less() {
  if (odd_ > 0) return take_shorter_passes();
  if (micro_batch_ <= prepared_.group) return false;
  if (search_) {
    search_->out_of_memory();
    micro_batch_ = search_->size() * prepared_.group;
  } else {
    micro_batch_ = micro_batch_ / prepared_.group / 2 * prepared_.group;
  }
  return true;
}

void ComputeThread::run_probe(const engine::TaskOrder& order) {
  std::vector<std::uint64_t> indices(order.count);
  std::iota(indices.begin(), indices.end(), 0);
  Task like{PassKind::probe, 0, indices, 0, micro_batch_, prepared_.seed};
  like.state = order.state;
  like.odd = odd_;
  Result<std::vector<float>> found = compute::probe(*loop_, prepared_.model->layout(), like);
  for (std::optional<Fault> fault; !found && (fault = loop_->take_fault()) && computes_on(*fault);)
    found = compute::probe(*loop_, prepared_.model->layout(), like);
  if (!found) return failed(order.number, found.error());
  Outcome outcome;
  outcome.count = order.count;
  outcome.probe = std::move(*found);
  events_.finished(order.number, outcome, 0, 0);
}

void ComputeThread::run(const engine::TaskOrder& order) {
  MOTLEY_ASSERT(prepared_.model != nullptr);
  if (Status believed = out_ ? Status(*out_) : try_passes(order.state); !believed)
    return failed(order.number, believed.error());
  if (order.kind == PassKind::probe) return run_probe(order);
  std::vector<std::uint64_t> indices(order.count);
  if (order.kind == PassKind::train) {
    data::SampleOrder(prepared_.seed, order.epoch, prepared_.train_samples, prepared_.shuffle)
        .fill(order.pass_first + order.first, indices);
  } else {
    for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = order.first + i;
  }
  TaskSink sink(*this, order.number);
  const TaskStop stop(*this, sink);
  duty_.start(now());
  Task task{.kind = order.kind,
            .version = order.version,
            .indices = indices,
            .first = order.first,
            .micro_batch = micro_batch_,
            .seed = prepared_.seed,
            .from_end = order.from_end,
            .epoch = order.epoch,
            .order_first = order.pass_first,
            .state = order.state,
            .odd = odd_};
  keep_on_device(order, task);
  const Result<Outcome> outcome = compute(task, weights_, sink, stop, [&] { sink.restart(); });
  duty_.stop(now());
  const double charge = duty_.take_charge();
  if (!outcome) return failed(order.number, outcome.error());
  if (task.kept && outcome->count > 0) {
    if (const Status kept = hand_out_kept(order.number); !kept) return events_.failed(order.number, kept.error());
  }
  events_.finished(order.number, *outcome, charge, seconds(weights_.waited()));
  if (order.kind != PassKind::evaluate) learn(*outcome, charge);
}

std::shared_ptr<DeviceServer> ComputeThread::server() {
  const std::lock_guard lock(mutex_);
  return server_;
}

// While the server is on the device, the gradient stays there, and the weights come from there where they are the same.
void ComputeThread::keep_on_device(const engine::TaskOrder& order, Task& task) {
  const std::shared_ptr<DeviceServer> server = this->server();
  task.kept = order.kind == PassKind::train && server && server->settled();
  task.resident = task.kept && server->has(order.weights);
}

Status ComputeThread::hand_out_kept(std::uint64_t task) {
  Result<std::vector<SharedBytes>> kept = prepared_.model->keep();
  if (!kept) return kept.error();
  for (ChunkId chunk = 0; chunk < kept->size(); ++chunk) events_.chunk(task, chunk, std::move((*kept)[chunk]));
  return {};
}

Result<Outcome> ComputeThread::compute(const Task& task, Weights& weights, Sink& sink, const Stop& stop,
                                       const std::function<void()>& restart) {
  for (Task smaller = task;;) {
    Result<Outcome> outcome = loop_->run(smaller, weights, sink, stop);
    if (outcome) {
      care_.went_well();
      return outcome;
    }
    restart();
    if (const std::optional<Fault> fault = loop_->take_fault()) {
      if (!computes_on(*fault)) return *out_;
    } else if (outcome.error().code != ErrorCode::memory || !take_less()) {
      return outcome;
    }
    smaller.micro_batch = micro_batch_;
    smaller.odd = odd_;
  }
}

Result<Outcome> ComputeThread::compute(Task task, engine::LocalTrainer& trainer, const Stop& stop) {
  task.version = trainer.version();
  task.micro_batch = micro_batch_;
  task.seed = prepared_.seed;
  task.resident = trainer.resident();
  task.odd = odd_;
  return compute(task, trainer, trainer, stop, [] {});
}

}  // namespace motley::runtime
