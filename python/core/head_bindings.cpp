// A run on the head: its coordinator, its files and the workers of this process. All threads but the caller's are
// native; the caller waits for what happens without the GIL.

#include <nanobind/ndarray.h>

#include <unistd.h>

#include "bindings.h"
#include "machine/keep_awake.h"
#include "program.h"
#include "runtime/head/head.h"
#include "script_models.h"
#include "story.h"
#include "tensor/flat_chunks.h"

namespace motley::python {
namespace {

using Flat = nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void copy_weights(const State& state, const Layout& layout, const Flat& to) {
  if (to.size() != layout.flat_elements()) throw nb::value_error("expected layout.flat_elements elements");
  put_chunks(layout, state.weights, {to.data(), to.size()});
}

std::vector<std::string> optimizer_states(const State& state) {
  std::vector<std::string> names;
  for (const auto& [name, chunks] : state.optimizer) names.push_back(name);
  return names;
}

void copy_optimizer(const State& state, const std::string& name, const Layout& layout, const Flat& to) {
  if (to.size() != layout.flat_elements()) throw nb::value_error("expected layout.flat_elements elements");
  const auto found = state.optimizer.find(name);
  if (found == state.optimizer.end()) throw nb::key_error(name.c_str());
  put_chunks(layout, found->second, {to.data(), to.size()});
}

class HeadRun {
 public:
  HeadRun(const cli::Launch& launch, const Script& script, const std::string& config, bool steps,
          const std::string& holds, bool live)
      : options_(launch.head.train),
        models_(std::make_shared<const Script>(script)),
        story_(happenings_, steps || holds == "steps", holds_of(holds)),
        observer_(observe::make_tee(make_screen(launch.json, live), make_story_observer(story_))),
        groups_(script.optimizer ? script.optimizer->groups.size() : 0) {
    keep_freed_memory();
    options_.target = launch.script;
    options_.text = config;
    options_.join_with = launch.join_with();
    options_.after_step = [this](const engine::StepClosed& step, const engine::Coordinator& coordinator) {
      story_.step(step, coordinator);
    };
    options_.holds = holds_of(holds);
    options_.on_held = [this](std::uint64_t version, bool step, const engine::Coordinator& coordinator) {
      story_.held(version, step, coordinator);
    };
    if (script.follower != nullptr) {
      options_.rates_after = [this, follower = script.follower](const observe::EvalDone& done) {
        return follow(follower->get(), done);
      };
    }
  }
  ~HeadRun() {
    if (forked()) {  // its threads are not in this process, and the terminal is the other's
      static_cast<void>(head_.release());
      static_cast<void>(observer_.release());
    }
    close();
  }
  HeadRun(const HeadRun&) = delete;
  HeadRun& operator=(const HeadRun&) = delete;

  /// Opens the run's files and its door, and lets it begin.
  void start() {
    const nb::gil_scoped_release no_gil;
    if (options_.manners.keep_awake) awake_.emplace(machine::kTrainsHere);
    head_ = std::make_unique<runtime::Head>(options_, models_, *observer_);
    raise_if(head_->open());
    happenings_.begin();
    story_.begin(head_->run());
    head_->start(true, [this] {
      story_.end();
      happenings_.end();
    });
    started_ = true;
  }
  std::optional<Happening> next() {
    if (forked()) return std::nullopt;
    end_idle_openmp_threads();
    std::optional<Happening> happening = happenings_.next();
    if (happening) {
      if (happening->held) held_ = happening;
      return happening;
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
  /// After next() told that the run is held.
  void go_on(const std::optional<std::vector<double>>& rates, const std::optional<nb::bytes>& state) {
    if (!held_) throw nb::value_error("the run is not held");
    if (rates && rates->size() != groups_) throw nb::value_error("expected a learning rate for each group");
    engine::Release release{.version = held_->version, .rates = rates, .state = std::nullopt};
    if (state) release.state = loss_state(*state);
    held_->state->optimizer.clear();  // the server's to write over
    const bool mark = !held_->held_step;
    held_.reset();
    if (started_ && !forked()) head_->host().go_on(std::move(release), mark);
  }
  /// `final`: for good; else whoever works here may come back.
  void stop(bool final) {
    if (!started_ || forked()) return;
    head_->host().stop(final);
  }
  /// Ends the threads, whatever they do. Idempotent.
  void close() {
    if (forked()) return;
    const nb::gil_scoped_release no_gil;
    head_.reset();
    awake_.reset();
    if (display_ != nullptr) display_->end();
  }
  void note(const std::string& text) {
    if (head_ != nullptr && started_) {
      head_->host().observe([text](observe::Observer& o) { o.note(text); });
    } else {
      observer_->note(text);
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
  std::string directory() const { return head_->run().dir->path().string(); }
  std::string token() const { return fleet::to_text(head_->run().token); }

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
  std::unique_ptr<observe::Observer> make_screen(bool json, bool live) {
    if (!live) return cli::make_observer(json, true);
    std::unique_ptr<observe::Display> display = observe::make_terminal_observer(STDERR_FILENO);
    display_ = display.get();
    return display;
  }
  /// In a child of the process that trains nothing of it runs.
  [[nodiscard]] bool forked() const { return getpid() != process_; }

  static modes::Holds holds_of(const std::string& word) {
    if (word == "marks") return modes::Holds::marks;
    if (word == "steps") return modes::Holds::steps;
    if (word != "never") throw nb::value_error("holds: expected never, marks or steps");
    return modes::Holds::never;
  }

  Happenings happenings_;
  runtime::TrainOptions options_;
  ScriptModels models_;
  Story story_;
  observe::Display* display_ = nullptr;  // of the observer, where the run is shown live
  std::unique_ptr<observe::Observer> observer_;
  std::optional<machine::KeepAwake> awake_;
  std::size_t groups_;
  std::optional<Happening> held_;  // told last, and not gone on from
  std::unique_ptr<runtime::Head> head_;
  bool started_ = false;
  pid_t process_ = getpid();
};

}  // namespace

void bind_head(nb::module_& m) {
  nb::class_<State>(m, "State")
      .def_prop_ro("version", [](const State& state) { return state.version; })
      .def("copy_weights", &copy_weights, nb::arg("layout"), nb::arg("to"))
      .def_prop_ro("optimizer_states", &optimizer_states)
      .def("copy_optimizer", &copy_optimizer, nb::arg("name"), nb::arg("layout"), nb::arg("to"));
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
      .def_ro("held", &Happening::held)
      .def_ro("state", &Happening::state);
  nb::class_<HeadRun>(m, "Head", nb::is_weak_referenceable())
      .def(nb::init<const cli::Launch&, const Script&, const std::string&, bool, const std::string&, bool>(),
           nb::arg("launch"), nb::arg("script"), nb::arg("config"), nb::arg("steps"), nb::arg("holds"), nb::arg("live"))
      .def("start", &HeadRun::start)
      .def("next", &HeadRun::next)
      .def("go_on", &HeadRun::go_on, nb::arg("rates").none(), nb::arg("state").none())
      .def("stop", &HeadRun::stop, nb::arg("final"))
      .def("close", &HeadRun::close)
      .def("note", &HeadRun::note)
      .def("hide", &HeadRun::hide)
      .def("show", &HeadRun::show, nb::arg("begun"))
      .def_prop_ro("directory", &HeadRun::directory)
      .def_prop_ro("token", &HeadRun::token);
}

}  // namespace motley::python
