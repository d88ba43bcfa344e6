#include "story.h"

namespace motley::python {
namespace {

constexpr std::size_t kStepsKept = 65536;  // that nobody has looked at; of more, the newest are not told

}  // namespace

void ToldQueue::add(Told told) {
  const std::lock_guard lock(mutex_);
  const bool spare = std::holds_alternative<report::StepDone>(told.event) && !told.held;
  if (spare && queue_.size() >= kStepsKept) return;
  queue_.push_back(std::move(told));
  changed_.notify_all();
}

void ToldQueue::begin() {
  const std::lock_guard lock(mutex_);
  ended_ = false;
}

void ToldQueue::end() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

std::optional<Told> ToldQueue::next() {
  wait_interruptibly(mutex_, changed_, [this] { return ended_ || !queue_.empty(); });
  const std::lock_guard lock(mutex_);
  if (queue_.empty()) return std::nullopt;
  Told first = std::move(queue_.front());
  queue_.pop_front();
  return first;
}

void Story::take(const report::Event& event) {
  std::visit(report::overloaded{[this](const report::RunStarted& e) { tested_ = e.tested; },
                                [this](const report::StepDone& e) { step(e); },
                                [this](const report::MarkReached& e) { mark(e); },
                                [this](const report::EvalDone& e) { evaluated(e); },
                                [this](const report::Held& e) { held(e); }, [](const auto&) {}},
             event);
}

void Story::step(const report::StepDone& event) {
  if (!steps_) return;
  step_ = Told{event};
  if (holds_ != modes::Holds::steps) tell(step_);
}

void Story::mark(const report::MarkReached& event) {
  mark_ = Told{event, std::make_shared<report::ModelState>(event.state)};
  // Where the run is held it waits for that, or for the step before it.
  if (holds_ == modes::Holds::never || (tested_ && !step_)) tell(mark_);
}

void Story::evaluated(const report::EvalDone& event) {
  evaluation_ = Told{event};
  if (holds_ == modes::Holds::never) tell(evaluation_);
}

void Story::held(const report::Held& event) {
  std::optional<Told>& at = event.step ? step_ : evaluation_ ? evaluation_ : mark_;
  if (!at && event.step) at = Told{report::StepDone{.step = event.version - 1}};
  if (!at) at = Told{report::MarkReached{.version = event.version}};
  at->held = true;
  at->held_step = event.step;
  at->state = std::make_shared<report::ModelState>(event.state);
  tell(at);
  if (event.step && tested_) tell(mark_);
}

void Story::tell(std::optional<Told>& waiting) {
  if (waiting) queue_.add(std::move(*waiting));
  waiting.reset();
}

void Story::end() {
  tell(step_);
  tell(mark_);
  tell(evaluation_);
}

}  // namespace motley::python
