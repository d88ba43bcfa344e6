#include "story.h"

#include "runtime/head/run.h"

namespace motley::python {
namespace {

constexpr std::size_t kStepsKept = 65536;  // that nobody has looked at; of more, the newest are not told

class Evaluations final : public observe::Observer {
 public:
  explicit Evaluations(Story& story) : story_(story) {}
  void eval(const observe::EvalDone& event) override { story_.evaluated(event); }
  void run(const observe::RunStarted&) override {}
  void worker(const observe::WorkerChanged&) override {}
  void plan(const observe::PlanMade&) override {}
  void step(const observe::StepDone&) override {}
  void checkpoint(std::uint64_t, const std::string&) override {}
  void done(const observe::Done&) override {}
  void error(const Error&) override {}
  void note(const std::string&) override {}
  void waiting(const std::string&) override {}
  void download(const std::string&, std::uint64_t, std::uint64_t) override {}

 private:
  Story& story_;
};

}  // namespace

State::State(const ps::Server& server, bool held) : version(server.version()) {
  ps::Snapshot handles = server.handles();
  weights = std::move(handles.weights);
  if (held) optimizer = std::move(handles.optimizer);
}

void Happenings::add(Happening happening) {
  const std::lock_guard lock(mutex_);
  if (happening.kind == Happening::Kind::step && !happening.held && queue_.size() >= kStepsKept) return;
  queue_.push_back(std::move(happening));
  changed_.notify_all();
}

void Happenings::begin() {
  const std::lock_guard lock(mutex_);
  ended_ = false;
}

void Happenings::end() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

std::optional<Happening> Happenings::next() {
  wait_interruptibly(mutex_, changed_, [this] { return ended_ || !queue_.empty(); });
  const std::lock_guard lock(mutex_);
  if (queue_.empty()) return std::nullopt;
  Happening first = std::move(queue_.front());
  queue_.pop_front();
  return first;
}

void Story::begin(const runtime::Run& run) {
  tested_ = run.inputs.test != nullptr;
  every_ = holds_ == modes::Holds::never ? 0 : run.config.evaluate_every;
  const std::uint64_t version = run.server->version();
  if (version == 0) return;
  for (const store::LedgerStep& step : run.since_mark) {
    loss_sum_ += step.loss_sum;
    weight_ += step.weight;
    for (const store::LedgerRange& range : step.ranges) samples_ += range.count;
  }
  learning_rate_ = run.server->learning_rate(0);
  const bool at_mark = version >= run.last_step() || modes::Marks{every_}.at(run.batches(), version);
  if (!at_mark) return;
  if (run.hold_owed && holds_ != modes::Holds::never)
    return mark(run.batches().range(version - 1).epoch, version, std::make_shared<State>(*run.server, false));
  loss_sum_ = weight_ = 0;
  samples_ = 0;
}

void Story::step(const engine::StepClosed& step, const engine::Coordinator& coordinator) {
  const std::uint64_t next = step.step + 1;
  if (steps_) {
    step_ = Happening{.kind = Happening::Kind::step,
                      .epoch = step.epoch,
                      .version = next,
                      .samples = step.samples,
                      .loss = step.loss_sum / step.weight,
                      .seconds = seconds(step.duration),
                      .learning_rate = step.learning_rate,
                      .gradient_norm = step.gradient_norm};
    if (holds_ != modes::Holds::steps) tell(step_);
  }
  if (samples_ == 0) learning_rate_ = step.learning_rate;
  loss_sum_ += step.loss_sum;
  weight_ += step.weight;
  samples_ += step.samples;
  seconds_ += seconds(step.duration);
  const bool epoch_over = coordinator.range(next).order_first == 0;
  const bool at_mark = next >= coordinator.steps() || (every_ > 0 ? next % every_ == 0 : epoch_over);
  if (at_mark) mark(step.epoch, next, std::make_shared<State>(coordinator.server(), false));
}

void Story::mark(std::uint64_t epoch, std::uint64_t version, std::shared_ptr<State> state) {
  mark_ = Happening{.kind = Happening::Kind::epoch,
                    .epoch = epoch,
                    .version = version,
                    .samples = samples_,
                    .loss = loss_sum_ / weight_,
                    .seconds = seconds_,
                    .learning_rate = learning_rate_,
                    .state = std::move(state)};
  loss_sum_ = weight_ = seconds_ = 0;
  samples_ = 0;
  // Where the run is held it waits for that, or for the step before it.
  if (holds_ == modes::Holds::never || (tested_ && !step_)) tell(mark_);
}

void Story::evaluated(const observe::EvalDone& event) {
  evaluation_ = Happening{.kind = Happening::Kind::evaluation,
                          .epoch = event.epoch,
                          .version = event.step,
                          .samples = event.samples,
                          .loss = event.loss,
                          .scores = event.scores};
  if (holds_ == modes::Holds::never) tell(evaluation_);
}

void Story::held(std::uint64_t version, bool step, const engine::Coordinator& coordinator) {
  std::optional<Happening>& at = step ? step_ : evaluation_ ? evaluation_ : mark_;
  if (!at) at = Happening{.kind = step ? Happening::Kind::step : Happening::Kind::epoch, .version = version};
  at->held = true;
  at->held_step = step;
  at->state = std::make_shared<State>(coordinator.server(), true);
  tell(at);
  if (step && tested_) tell(mark_);
}

void Story::tell(std::optional<Happening>& waiting) {
  if (waiting) happenings_.add(std::move(*waiting));
  waiting.reset();
}

void Story::end() {
  tell(step_);
  tell(mark_);
  tell(evaluation_);
}

std::unique_ptr<observe::Observer> make_story_observer(Story& story) { return std::make_unique<Evaluations>(story); }

}  // namespace motley::python
