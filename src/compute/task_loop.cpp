#include "compute/task_loop.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/fault_words.h"
#include "compute/device_care.h"

namespace motley::compute {

TaskLoop::TaskLoop(DeviceModel& model)
    : model_(model),
      loader_(model),
      publisher_(model.layout(), [this](ChunkId chunk) { return model_.gradient(chunk); }),
      flow_(model.flow()),
      care_(model.care()) {
  MOTLEY_ASSERT(!care_.any() || flow_ != Flow::overlapped);  // nothing leaves that is not believed yet
}

Result<Outcome> TaskLoop::run(const Task& task, Weights& weights, Sink& sink, const Stop& stop) {
  open(task, weights, sink, stop);
  await_weights();
  while (claim() > 0) compute();
  return close();
}

void TaskLoop::open(const Task& task, Weights& weights, Sink& sink, const Stop& stop) {
  MOTLEY_ASSERT(task.micro_batch > 0);
  task_ = &task;
  sink_ = &sink;
  stop_ = &stop;
  group_ = model_.group(task.kind);
  outcome_ = {};
  claimed_ = {};
  started_ = begun_ = abandoned_ = false;
  failure_.reset();
  fault_.reset();
  if (!task.resident) loader_.open(task.version, weights);
  keep(model_.open(task, loader_));
}

// What the loader says comes first: a model that waits in vain for weights may answer anything.
void TaskLoop::keep(const Status& status) {
  if (!task_->resident && loader_.abandoned()) {
    abandoned_ = true;
  } else if (!status) {
    failure_ = !task_->resident && loader_.failure() ? *loader_.failure() : status.error();
    if (care_.any() && failure_->code == ErrorCode::internal) fault_ = fault_in(failure_->message);
  }
}

/// Before anything that the device said leaves.
void TaskLoop::believe() {
  if (!care_.any() || !goes_on()) return;
  fault_ = model_.fault();
  if (fault_) failure_ = Error{ErrorCode::internal, sentence_of(*fault_, model_.capabilities().device), ""};
}

void TaskLoop::await_weights() {
  if (const std::uint64_t wanted = trains() ? limit() : 0; goes_on() && wanted > 0)
    keep(model_.read(micro_batch(next_cut(wanted), wanted)));
  if (goes_on()) start();
}

void TaskLoop::start() {
  started_ = true;
  if (!task_->resident) {
    const bool some = trains() && model_.starts_early(*task_);
    if (!(some ? loader_.bring_some() : loader_.bring_all())) {
      const Error why{ErrorCode::internal, "the weights did not come", ""};
      return keep(why);
    }
  }
  keep(model_.start());
}

std::uint64_t TaskLoop::claim() {
  while (goes_on() && !begun_) {
    const std::uint64_t wanted = limit();
    if (wanted == 0) abandoned_ = true;
    if (wanted <= outcome_.count) break;  // trimmed to what is done
    const PassCut cut = next_cut(wanted);
    if (!stop_->claim(outcome_.count + cut.count)) continue;
    wanted_ = wanted;
    claimed_ = cut;
    return cut.count;
  }
  return 0;
}

void TaskLoop::compute() {
  MOTLEY_ASSERT(claimed_.count > 0);
  if (!started_) start();
  if (!goes_on()) return;
  const Result<Forward> found = model_.forward(micro_batch(claimed_, wanted_));
  keep(found ? Status() : Status(found.error()));
  if (!goes_on()) return;
  const std::uint64_t count = std::exchange(claimed_, {}).count;
  if (*found == Forward::refused) return;  // it is cut anew
  outcome_.count += count;
  if (trains()) {
    if (flow_ == Flow::overlapped) begin_if_last();
    if (goes_on()) keep(model_.backward(begun_ && publishes() ? this : nullptr));
    if (flow_ == Flow::behind) begin_if_last();
    if (!goes_on()) return;
  }
  if (!begun_) sink_->progress(outcome_.count);
}

/// The limit may have been raised meanwhile.
void TaskLoop::begin_if_last() {
  if (!goes_on()) return;
  const std::uint64_t wanted = limit();
  if (wanted > 0 && outcome_.count >= wanted) begin();
}

void TaskLoop::begin() {
  begun_ = true;
  believe();
  if (goes_on()) take_sums();
  if (!goes_on() || !gives_gradient(task_->kind)) return;
  sink_->begin(outcome_.count, outcome_.weight, outcome_.loss_sum);
  if (publishes()) publisher_.start(*sink_);
}

void TaskLoop::take_sums() {
  Result<Sums> sums = model_.sums();
  if (!sums) return keep(sums.error());
  outcome_.weight = sums->weight;
  outcome_.loss_sum = sums->loss_sum;
  outcome_.correct = sums->correct;
  outcome_.scores = std::move(sums->scores);
}

void TaskLoop::finish() {
  if (!trains()) {
    believe();
    return goes_on() ? take_sums() : void();
  }
  const bool reported = !begun_;
  if (!begun_) begin();
  if (goes_on()) keep(model_.finish(outcome_.count));
  believe();
  if (!goes_on()) return;
  if (publishes()) publisher_.finish();
  if (!reported) sink_->progress(outcome_.count);
}

Result<Outcome> TaskLoop::close() {
  if (claimed_.count > 0) abandoned_ = true;
  outcome_.micro_batch = std::max(group_, model_.at_once(*task_));
  if (goes_on()) finish();
  model_.close();
  if (failure_) return *std::exchange(failure_, std::nullopt);
  if (abandoned_) return Outcome{};
  return std::exchange(outcome_, {});
}

std::uint64_t TaskLoop::limit() const {
  const std::uint64_t all = task_->indices.size();
  const std::uint64_t limit = std::min(stop_->limit(), all);
  if (group_ == 0 || limit == all) return limit;
  // Groups are never cut, so that of a limit inside of one the whole groups are left.
  const std::uint64_t partial = task_->from_end ? partial_group() : 0;
  return limit < partial ? 0 : partial + (limit - partial) / group_ * group_;
}

/// Samples at the end of the task that make no whole group: the pass may end with such a one.
std::uint64_t TaskLoop::partial_group() const { return task_->indices.size() % group_; }

/// Whole groups. Where the gradient leaves during the last backward pass, or right behind it, the odd part goes first:
/// that hides the better the longer the last pass is.
PassCut TaskLoop::next_cut(std::uint64_t limit) const {
  const std::uint64_t left = limit - outcome_.count, group = std::max<std::uint64_t>(group_, 1);
  const std::uint32_t most = model_.at_once(*task_);
  // A model that takes fewer than it is given cuts by groups that it knows: filled up they would be others.
  const bool fills_up = group_ == 0 && most >= task_->micro_batch;
  if (task_->odd > 0 && fills_up) return next_pass(left, {most, task_->odd});
  const std::uint64_t partial = group_ > 0 && task_->from_end && outcome_.count == 0 ? partial_group() : 0;
  const std::uint64_t whole = std::max<std::uint64_t>(1, most / group);
  const std::uint64_t groups = (left + group - 1) / group, odd = groups % whole;
  const bool odd_first = trains() && flow_ != Flow::in_step && odd > 0 && groups > whole;
  std::uint64_t taken = odd_first ? odd : std::min(whole, groups);
  if (task_->odd > 0 && group_ > 0) taken = next_group_pass(left, partial, whole);
  return {partial > 0 ? partial + (taken - 1) * group : std::min(taken * group, left), 1};
}

/// Where passes are to have two sizes: so many whole groups, or one. The group that is cut short goes alone.
std::uint64_t TaskLoop::next_group_pass(std::uint64_t left, std::uint64_t partial, std::uint64_t whole) const {
  return partial == 0 && left / group_ >= whole ? whole : 1;
}

MicroBatch TaskLoop::micro_batch(PassCut cut, std::uint64_t limit) const {
  const std::uint64_t at = task_->at(outcome_.count, cut.count);
  return {task_->indices.subspan(at, cut.count), at, limit, cut.repeats};
}

}  // namespace motley::compute
