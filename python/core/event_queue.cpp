#include "event_queue.h"

namespace motley::python {
namespace {

constexpr std::size_t kStepsKept = 65536;  // that nobody has looked at; of more, the newest are not told

}  // namespace

void EventQueue::add(QueuedEvent queued) {
  const std::lock_guard lock(mutex_);
  const bool spare = std::holds_alternative<report::StepDone>(queued.event) && !queued.paused;
  if (spare && queue_.size() >= kStepsKept) return;
  queue_.push_back(std::move(queued));
  changed_.notify_all();
}

void EventQueue::begin() {
  const std::lock_guard lock(mutex_);
  ended_ = false;
}

void EventQueue::end() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

std::optional<QueuedEvent> EventQueue::next() {
  wait_interruptibly(mutex_, changed_, [this] { return ended_ || !queue_.empty(); });
  const std::lock_guard lock(mutex_);
  if (queue_.empty()) return std::nullopt;
  QueuedEvent first = std::move(queue_.front());
  queue_.pop_front();
  return first;
}

void EventSequencer::take(const report::Event& event) {
  std::visit(report::overloaded{[this](const report::RunStarted& e) { tested_ = e.tested; },
                                [this](const report::StepDone& e) { step(e); },
                                [this](const report::EvalPointReached& e) { eval_point(e); },
                                [this](const report::EvalDone& e) { evaluated(e); },
                                [this](const report::Paused& e) { paused(e); }, [](const auto&) {}},
             event);
}

void EventSequencer::step(const report::StepDone& event) {
  if (!steps_) return;
  step_ = QueuedEvent{event};
  if (pauses_ != modes::Pauses::steps) publish(step_);
}

void EventSequencer::eval_point(const report::EvalPointReached& event) {
  eval_point_ = QueuedEvent{event, std::make_shared<report::ModelState>(event.state)};
  // Where the run is paused it waits for that, or for the step before it.
  if (pauses_ == modes::Pauses::never || (tested_ && !step_)) publish(eval_point_);
}

void EventSequencer::evaluated(const report::EvalDone& event) {
  evaluation_ = QueuedEvent{event};
  if (pauses_ == modes::Pauses::never) publish(evaluation_);
}

void EventSequencer::paused(const report::Paused& event) {
  std::optional<QueuedEvent>& at = event.step ? step_ : evaluation_ ? evaluation_ : eval_point_;
  if (!at && event.step) at = QueuedEvent{report::StepDone{.step = event.version - 1}};
  if (!at) at = QueuedEvent{report::EvalPointReached{.version = event.version}};
  at->paused = true;
  at->paused_step = event.step;
  at->state = std::make_shared<report::ModelState>(event.state);
  publish(at);
  if (event.step && tested_) publish(eval_point_);
}

void EventSequencer::publish(std::optional<QueuedEvent>& waiting) {
  if (waiting) queue_.add(std::move(*waiting));
  waiting.reset();
}

void EventSequencer::end() {
  publish(step_);
  publish(eval_point_);
  publish(evaluation_);
}

}  // namespace motley::python
