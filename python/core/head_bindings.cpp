// A run on the head: its coordinator, its files and the workers of this process. All threads but the caller's are
// native; the caller waits for what happens without the GIL.

#include <nanobind/ndarray.h>

#include <unistd.h>

#include <deque>

#include "bindings.h"
#include "program.h"
#include "runtime/head.h"
#include "script_models.h"
#include "tensor/flat_chunks.h"

namespace motley::python {
namespace {

using Flat = nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// The weights at one version. Taking one copies nothing.
struct State {
  explicit State(const ps::Server& server) : version(server.version()) {
    for (ChunkId chunk = 0; chunk < server.layout().chunks().size(); ++chunk) weights.push_back(server.weights(chunk));
  }
  std::uint64_t version;
  std::vector<SharedBytes> weights;
  void copy_weights(const Layout& layout, const Flat& to) const {
    if (to.size() != layout.flat_elements()) throw nb::value_error("expected layout.flat_elements elements");
    put_chunks(layout, weights, {to.data(), to.size()});
  }
};

/// What happened: a step, the end of an epoch (with its state), or an evaluation.
struct Happening {
  enum class Kind : std::uint8_t { step, epoch, evaluation };
  Kind kind = Kind::step;
  std::uint64_t epoch = 0, version = 0, samples = 0;
  double loss = 0, seconds = 0, learning_rate = 0, gradient_norm = 0;
  std::vector<std::pair<std::string, double>> scores{};
  std::optional<State> state{};
};

constexpr std::size_t kStepsKept = 65536;  // that nobody has looked at; of more, the newest are not told

class Happenings {
 public:
  void add(Happening happening) {
    const std::lock_guard lock(mutex_);
    if (happening.kind == Happening::Kind::step && queue_.size() >= kStepsKept) return;
    queue_.push_back(std::move(happening));
    changed_.notify_all();
  }
  void end() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  /// The next one; empty at the end.
  std::optional<Happening> next() {
    wait_interruptibly(mutex_, changed_, [this] { return ended_ || !queue_.empty(); });
    const std::lock_guard lock(mutex_);
    if (queue_.empty()) return std::nullopt;
    Happening first = std::move(queue_.front());
    queue_.pop_front();
    return first;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Happening> queue_;
  bool ended_ = false;
};

/// Puts together what an epoch is from its steps.
class EpochSums {
 public:
  /// `steps`: each of them is wanted, too.
  EpochSums(Happenings& happenings, bool steps) : happenings_(happenings), steps_(steps) {}
  void step(const engine::StepClosed& step, const engine::Coordinator& coordinator) {
    if (steps_) {
      happenings_.add({.kind = Happening::Kind::step,
                       .epoch = step.epoch,
                       .version = step.step + 1,
                       .samples = step.samples,
                       .loss = step.loss_sum / step.weight,
                       .seconds = seconds(step.duration),
                       .learning_rate = step.learning_rate,
                       .gradient_norm = step.gradient_norm});
    }
    if (samples_ == 0) learning_rate_ = step.learning_rate;
    loss_sum_ += step.loss_sum;
    weight_ += step.weight;
    samples_ += step.samples;
    seconds_ += seconds(step.duration);
    const std::uint64_t next = step.step + 1;
    if (next < coordinator.steps() && coordinator.range(next).epoch == step.epoch) return;
    happenings_.add({.kind = Happening::Kind::epoch,
                     .epoch = step.epoch,
                     .version = next,
                     .samples = samples_,
                     .loss = loss_sum_ / weight_,
                     .seconds = seconds_,
                     .learning_rate = learning_rate_,
                     .state = State(coordinator.server())});
    loss_sum_ = weight_ = seconds_ = 0;
    samples_ = 0;
  }

 private:
  Happenings& happenings_;
  bool steps_;
  double loss_sum_ = 0, weight_ = 0, seconds_ = 0, learning_rate_ = 0;
  std::uint64_t samples_ = 0;
};

/// Notes evaluations beside what is displayed.
class Evaluations final : public observe::Observer {
 public:
  explicit Evaluations(Happenings& happenings) : happenings_(happenings) {}
  void eval(const observe::EvalDone& event) override {
    happenings_.add({.kind = Happening::Kind::evaluation,
                     .epoch = event.epoch,
                     .version = event.step,
                     .samples = event.samples,
                     .loss = event.loss,
                     .scores = event.scores,
                     .state = {}});
  }
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
  Happenings& happenings_;
};

class HeadRun {
 public:
  HeadRun(const cli::Launch& launch, const Script& script, const std::string& config, bool steps)
      : options_(launch.head.train),
        models_(std::make_shared<const Script>(script)),
        observer_(observe::make_tee(cli::make_observer(launch.json, true), std::make_unique<Evaluations>(happenings_))),
        sums_(happenings_, steps) {
    keep_freed_memory();
    options_.target = launch.script;
    options_.text = config;
    options_.join_with = launch.join_with();
    options_.after_step = [this](const engine::StepClosed& step, const engine::Coordinator& coordinator) {
      sums_.step(step, coordinator);
    };
    if (script.follower != nullptr) {
      options_.rates_after = [this, follower = script.follower](const observe::EvalDone& done) {
        return follow(follower->get(), done);
      };
    }
  }
  ~HeadRun() {
    if (forked()) static_cast<void>(head_.release());  // its threads are not in this process
    close();
  }
  HeadRun(const HeadRun&) = delete;
  HeadRun& operator=(const HeadRun&) = delete;

  /// Opens the run's files and its door, and lets it begin.
  void start() {
    const nb::gil_scoped_release no_gil;
    head_ = std::make_unique<runtime::Head>(options_, models_, *observer_);
    raise_if(head_->open());
    head_->start(true, [this] { happenings_.end(); });
    started_ = true;
  }
  std::optional<Happening> next() {
    if (forked()) return std::nullopt;
    end_idle_openmp_threads();
    std::optional<Happening> happening = happenings_.next();
    if (happening) return happening;
    Status status;
    {
      const nb::gil_scoped_release no_gil;
      if (started_) status = head_->wait();
      started_ = false;
    }
    raise_if(status);
    return std::nullopt;
  }
  void stop() {
    if (!started_ || forked()) return;
    head_->host().observe([](observe::Observer& o) { o.note("finishing the open step; Ctrl-C again ends at once"); });
    head_->host().stop();
  }
  /// Ends the threads, whatever they do. Idempotent.
  void close() {
    if (forked()) return;
    const nb::gil_scoped_release no_gil;
    head_.reset();
  }
  void note(const std::string& text) {
    if (head_ != nullptr && started_) {
      head_->host().observe([text](observe::Observer& o) { o.note(text); });
    } else {
      observer_->note(text);
    }
  }
  std::string directory() const { return head_->run().dir->path().string(); }
  std::string token() const { return cluster::to_text(head_->run().token); }

 private:
  /// On the coordinator's thread.
  std::vector<double> follow(const nb::object& follower, const observe::EvalDone& done) {
    const nb::gil_scoped_acquire gil;
    try {
      return nb::cast<std::vector<double>>(follower(directory(), done.step, done.loss, done.scores));
    } catch (const std::exception& error) {
      observer_->error({ErrorCode::internal, std::string("the schedule did not take an evaluation: ") + error.what(),
                        "a run that is resumed may go on with another learning rate"});
      return {};
    }
  }
  /// In a child of the process that trains nothing of it runs.
  [[nodiscard]] bool forked() const { return getpid() != process_; }

  Happenings happenings_;
  runtime::TrainOptions options_;
  ScriptModels models_;
  std::unique_ptr<observe::Observer> observer_;
  EpochSums sums_;
  std::unique_ptr<runtime::Head> head_;
  bool started_ = false;
  pid_t process_ = getpid();
};

}  // namespace

void bind_head(nb::module_& m) {
  nb::class_<State>(m, "State")
      .def_prop_ro("version", [](const State& state) { return state.version; })
      .def("copy_weights", &State::copy_weights, nb::arg("layout"), nb::arg("to"));
  nb::class_<Happening>(m, "Happening")
      .def_prop_ro("kind",
                   [](const Happening& happening) {
                     constexpr const char* kWords[] = {"step", "epoch", "evaluation"};
                     return kWords[static_cast<std::size_t>(happening.kind)];
                   })
      .def_ro("epoch", &Happening::epoch)
      .def_ro("version", &Happening::version)
      .def_ro("samples", &Happening::samples)
      .def_ro("loss", &Happening::loss)
      .def_ro("seconds", &Happening::seconds)
      .def_ro("learning_rate", &Happening::learning_rate)
      .def_ro("gradient_norm", &Happening::gradient_norm)
      .def_ro("scores", &Happening::scores)
      .def_prop_ro("state", [](const Happening& happening) { return happening.state; });
  nb::class_<HeadRun>(m, "Head", nb::is_weak_referenceable())
      .def(nb::init<const cli::Launch&, const Script&, const std::string&, bool>(), nb::arg("launch"),
           nb::arg("script"), nb::arg("config"), nb::arg("steps"))
      .def("start", &HeadRun::start)
      .def("next", &HeadRun::next)
      .def("stop", &HeadRun::stop)
      .def("close", &HeadRun::close)
      .def("note", &HeadRun::note)
      .def_prop_ro("directory", &HeadRun::directory)
      .def_prop_ro("token", &HeadRun::token);
}

}  // namespace motley::python
