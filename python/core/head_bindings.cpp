// A run on the head: its coordinator, its files and the workers of this process. All threads but the caller's are
// native; the caller waits for what happens without the GIL.

#include <nanobind/ndarray.h>

#include <unistd.h>

#include "bindings.h"
#include "event_queue.h"
#include "machine/keep_awake.h"
#include "output.h"
#include "program.h"
#include "report/terminal_sink.h"
#include "runtime/head/head.h"
#include "runtime/head/measuring.h"
#include "script_models.h"
#include "tensor/flat_chunks.h"

namespace motley::python {
namespace {

using Flat = nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void copy_weights(const report::ModelState& state, const Layout& layout, const Flat& to) {
  if (to.size() != layout.flat_elements()) throw nb::value_error("expected layout.flat_elements elements");
  put_chunks(layout, state.weights, {to.data(), to.size()});
}

std::vector<std::string> optimizer_states(const report::ModelState& state) {
  std::vector<std::string> names;
  for (const auto& [name, chunks] : state.optimizer) names.push_back(name);
  return names;
}

void copy_optimizer(const report::ModelState& state, const std::string& name, const Layout& layout, const Flat& to) {
  if (to.size() != layout.flat_elements()) throw nb::value_error("expected layout.flat_elements elements");
  const auto found = state.optimizer.find(name);
  if (found == state.optimizer.end()) throw nb::key_error(name.c_str());
  put_chunks(layout, found->second, {to.data(), to.size()});
}

// The weights that the event is about.
std::uint64_t version_of(const QueuedEvent& queued) {
  return std::visit(report::overloaded{[](const report::StepDone& e) { return e.step + 1; },
                                       [](const report::EvalPointReached& e) { return e.version; },
                                       [](const report::EvalDone& e) { return e.step; }},
                    queued.event);
}

template <class F>
auto of_all(const QueuedEvent& queued, F&& get) {
  return std::visit(get, queued.event);
}

// 0 for an evaluation.
template <class F>
double of_training(const QueuedEvent& queued, F&& get) {
  return std::visit(report::overloaded{[](const report::EvalDone&) { return 0.0; }, get}, queued.event);
}

class HeadRun {
 public:
  HeadRun(const cli::Launch& launch, const Script& script, const std::string& config, bool steps,
          const std::string& pauses, bool live)
      : options_(launch.head.train),
        models_(std::make_shared<const Script>(script)),
        sequencer_(std::make_shared<EventSequencer>(queue_, steps || pauses == "steps", pauses_of(pauses))),
        output_(make_screen(launch.json, live)),
        sink_(std::make_unique<report::Tee>(std::vector<std::shared_ptr<report::Sink>>{output_, sequencer_})),
        groups_(script.optimizer.groups.size()) {
    keep_freed_memory();
    options_.target = launch.name();
    options_.text = config;
    options_.join_with = launch.join_with();
    options_.pauses = pauses_of(pauses);
    if (script.follower != nullptr) {
      options_.rates_after = [this, follower = script.follower](const report::EvalDone& done) {
        return follow(follower->get(), done);
      };
    }
  }
  ~HeadRun() {
    if (forked()) {  // its threads are not in this process, and the terminal is the other's
      static_cast<void>(head_.release());
      static_cast<void>(sink_.release());
      static_cast<void>(new std::shared_ptr(std::move(output_)));
      static_cast<void>(new std::shared_ptr(std::move(display_)));
    } else {
      const nb::gil_scoped_release no_gil;
      output_->hurry();  // close() was the time to wait
      end_threads();
    }
  }
  HeadRun(const HeadRun&) = delete;
  HeadRun& operator=(const HeadRun&) = delete;

  /// Opens the run's files and its door.
  void open() {
    const nb::gil_scoped_release no_gil;
    if (options_.resource_policy.keep_awake) awake_.emplace(machine::kTrainsHere);
    head_ = std::make_unique<runtime::Head>(options_, models_, *sink_);
    raise_if(head_->open());
    const std::uint64_t version = head_->run().server->version();
    const bool owed = head_->run().pause_owed && options_.pauses != modes::Pauses::never;
    bodies_until_ = owed && version > 0 ? version - 1 : version;
  }
  /// Lets it begin. REQUIRES open().
  void start() {
    const nb::gil_scoped_release no_gil;
    queue_.begin();
    head_->start(true, [this] {
      sequencer_->end();
      queue_.end();
    });
    started_ = true;
  }
  std::optional<QueuedEvent> next() {
    if (forked()) return std::nullopt;
    end_idle_openmp_threads();
    std::optional<QueuedEvent> queued = queue_.next();
    if (queued) {
      if (queued->paused) paused_ = queued;
      return queued;
    }
    Status status;
    {
      const nb::gil_scoped_release no_gil;
      if (started_) status = head_->wait();
      started_ = false;
    }
    raise_if(status);
    return std::nullopt;
  }
  /// After next() told that the run is paused.
  void go_on(const std::optional<std::vector<double>>& rates, const std::optional<nb::bytes>& state,
             const std::vector<std::pair<std::uint64_t, std::uint64_t>>& batches) {
    if (!paused_) throw nb::value_error("the run is not held");
    if (rates && rates->size() != groups_) throw nb::value_error("expected a learning rate for each group");
    engine::Resume resume{.version = version_of(*paused_), .rates = rates, .state = std::nullopt};
    resume.batches = batch_changes(batches, resume.version);
    if (state) resume.state = loss_state(*state);
    paused_->state->optimizer.clear();  // the server's to write over
    const bool eval_point = !paused_->paused_step;
    paused_.reset();
    if (started_ && !forked()) head_->host().go_on(std::move(resume), eval_point);
  }
  /// `final`: for good; else whoever works here may come back.
  void stop(bool final) {
    if (!started_ || forked()) return;
    if (!final) output_->hurry();  // somebody waits for this process to end
    head_->stop(final);
  }
  /// Ends the threads, whatever they do. Idempotent.
  void close() {
    if (forked()) return;
    {
      const nb::gil_scoped_release no_gil;
      end_threads();
    }
    say_all(*output_);
  }
  void note(const std::string& text) {
    if (head_ != nullptr && started_) {
      head_->host().tell(report::Note{text});
    } else {
      sink_->take(report::Note{text});
    }
  }
  /// Display::hide() and show(), of a run that is shown live. Any thread.
  void hide() {
    const nb::gil_scoped_release no_gil;
    display_->hide();
  }
  void show(const std::string& begun) {
    const nb::gil_scoped_release no_gil;
    display_->show(begun);
  }
  [[nodiscard]] std::uint64_t bodies_until() const { return bodies_until_; }
  std::string directory() const { return head_->run().dir->path().string(); }
  std::string token() const { return fleet::to_text(head_->run().token); }

 private:
  void end_threads() {
    head_.reset();
    awake_.reset();
    if (display_ != nullptr) display_->end();
  }
  /// On the coordinator's thread.
  std::vector<double> follow(const nb::object& follower, const report::EvalDone& done) {
    const nb::gil_scoped_acquire gil;
    try {
      return nb::cast<std::vector<double>>(follower(directory(), done.step, done.loss, done.scores));
    } catch (const std::exception& error) {
      sink_->take(report::Failure{error_of(error, "the schedule did not take an evaluation", ErrorCode::input,
                                           "a run that is resumed may go on with another learning rate")});
      return {};
    }
  }
  std::shared_ptr<cli::Output> make_screen(bool json, bool live) {
    if (!live) return cli::make_output(json, true);
    auto writer = std::make_shared<report::Writer>(STDERR_FILENO);
    display_ = report::make_terminal_sink(writer);
    return std::make_shared<cli::Output>(display_, std::vector{std::move(writer)});
  }
  /// In a child of the process that trains nothing of it runs.
  [[nodiscard]] bool forked() const { return getpid() != process_; }

  static modes::Pauses pauses_of(const std::string& word) {
    if (word == "eval_points") return modes::Pauses::eval_points;
    if (word == "steps") return modes::Pauses::steps;
    if (word != "never") throw nb::value_error("pauses: expected never, eval_points or steps");
    return modes::Pauses::never;
  }

  EventQueue queue_;
  runtime::TrainOptions options_;
  ScriptModels models_;
  std::shared_ptr<report::Display> display_;  // where the run is shown live
  std::shared_ptr<EventSequencer> sequencer_;
  std::shared_ptr<cli::Output> output_;
  std::unique_ptr<report::Sink> sink_;
  std::optional<machine::KeepAwake> awake_;
  std::size_t groups_;
  std::optional<QueuedEvent> paused_;  // told last, and not gone on from
  std::unique_ptr<runtime::Head> head_;
  bool started_ = false;
  std::uint64_t bodies_until_ = 0;  // from where it goes on, the eval points up to there were looked at
  pid_t process_ = getpid();
};

config::RunConfig config_of(const cli::Launch& launch, const std::string& config) {
  runtime::TrainOptions options = launch.head.train;
  options.target = launch.script;
  options.text = config;
  return value_or_raise(runtime::read_config(options));
}

// Of a round, in a run of this launch with this run file; 0: it makes exact steps.
std::uint64_t local_steps(const cli::Launch& launch, const std::string& config) {
  const config::RunConfig read = config_of(launch, config);
  return config::in_rounds(read) ? read.rounds_steps : 0;
}

std::string mode(const cli::Launch& launch, const std::string& config) { return config_of(launch, config).mode; }

}  // namespace

void bind_head(nb::module_& m) {
  m.def("local_steps", &local_steps, nb::arg("launch"), nb::arg("config"));
  m.def("mode", &mode, nb::arg("launch"), nb::arg("config"));
  nb::class_<report::ModelState>(m, "State")
      .def_prop_ro("version", [](const report::ModelState& state) { return state.version; })
      .def("copy_weights", &copy_weights, nb::arg("layout"), nb::arg("to"))
      .def_prop_ro("optimizer_states", &optimizer_states)
      .def("copy_optimizer", &copy_optimizer, nb::arg("name"), nb::arg("layout"), nb::arg("to"));
  nb::class_<QueuedEvent>(m, "Event")
      .def_prop_ro("kind",
                   [](const QueuedEvent& queued) {
                     constexpr const char* kWords[] = {"step", "epoch", "evaluation"};
                     return kWords[queued.event.index()];
                   })
      .def_prop_ro("version", &version_of)
      .def_prop_ro("epoch",
                   [](const QueuedEvent& queued) { return of_all(queued, [](const auto& e) { return e.epoch; }); })
      .def_prop_ro("samples",
                   [](const QueuedEvent& queued) { return of_all(queued, [](const auto& e) { return e.samples; }); })
      .def_prop_ro("loss",
                   [](const QueuedEvent& queued) { return of_all(queued, [](const auto& e) { return e.loss; }); })
      .def_prop_ro(
          "seconds",
          [](const QueuedEvent& queued) { return of_training(queued, [](const auto& e) { return e.seconds; }); })
      .def_prop_ro(
          "learning_rate",
          [](const QueuedEvent& queued) { return of_training(queued, [](const auto& e) { return e.learning_rate; }); })
      .def_prop_ro("gradient_norm",
                   [](const QueuedEvent& queued) {
                     const auto* step = std::get_if<report::StepDone>(&queued.event);
                     return step != nullptr ? step->gradient_norm : 0;
                   })
      .def_prop_ro("scores",
                   [](const QueuedEvent& queued) {
                     const auto* tested = std::get_if<report::EvalDone>(&queued.event);
                     return tested != nullptr ? tested->scores : decltype(tested->scores)();
                   })
      .def_ro("paused", &QueuedEvent::paused)
      .def_ro("state", &QueuedEvent::state);
  nb::class_<HeadRun>(m, "Head", nb::is_weak_referenceable())
      .def(nb::init<const cli::Launch&, const Script&, const std::string&, bool, const std::string&, bool>(),
           nb::arg("launch"), nb::arg("script"), nb::arg("config"), nb::arg("steps"), nb::arg("pauses"),
           nb::arg("live"))
      .def("open", &HeadRun::open)
      .def("start", &HeadRun::start)
      .def("next", &HeadRun::next)
      .def("go_on", &HeadRun::go_on, nb::arg("rates").none(), nb::arg("state").none(), nb::arg("batches") = nb::list())
      .def("stop", &HeadRun::stop, nb::arg("final"))
      .def("close", &HeadRun::close)
      .def("note", &HeadRun::note)
      .def("hide", &HeadRun::hide)
      .def("show", &HeadRun::show, nb::arg("begun"))
      .def_prop_ro("bodies_until", &HeadRun::bodies_until)
      .def_prop_ro("directory", &HeadRun::directory)
      .def_prop_ro("token", &HeadRun::token);
}

}  // namespace motley::python
