// A script's process as worker of somebody's run, and what is measured of a script before its run.

#include <algorithm>
#include <functional>
#include <thread>

#include "bindings.h"
#include "output.h"
#include "program.h"
#include "ranks.h"
#include "runtime/head/auto_mode.h"
#include "runtime/head/reception.h"
#include "runtime/inputs.h"
#include "script_models.h"

namespace motley::python {
namespace {

/// Runs `work` on a thread of its own. Ctrl-C asks it to stop, and lets `output` hurry; once more ends the process.
Status run_interruptibly(cli::Output& output, const std::function<Status(runtime::StopSource&)>& work) {
  end_idle_openmp_threads();
  runtime::StopSource stop;
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Status> status;
  std::thread thread([&] {
    Status end = work(stop);
    const std::lock_guard lock(mutex);
    status = std::move(end);
    changed.notify_all();
  });
  const auto over = [&] { return status.has_value(); };
  try {
    wait_interruptibly(mutex, changed, over);
  } catch (nb::python_error&) {
    stop.request();
    output.hurry();
    try {
      wait_interruptibly(mutex, changed, over);
    } catch (nb::python_error&) {
      std::_Exit(exit_status(ErrorCode::interrupted));
    }
  }
  const nb::gil_scoped_release no_gil;
  thread.join();
  return *status;
}

std::optional<Duration> patience_of(double seconds) {
  if (seconds <= 0) return std::nullopt;
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

// Which of its script's runs the head was at in the end: the one of `script`, which is over then, or another. Empty:
// this machine left, or the head has gone. 0: the launch has another token now, with which it is to be called again.
std::optional<std::uint64_t> serve(cli::Launch& launch, const Script& script, double patience) {
  keep_freed_memory();
  ScriptModels models(std::make_shared<const Script>(script));
  const std::unique_ptr<cli::Output> sink = cli::make_output(launch.json, true);
  cli::JoinDisplay display(*sink);
  runtime::JoinOptions options = launch.join;
  options.patience = patience_of(patience);
  bool asked_to_stop = false, again = false;
  runtime::JoinEvents events = display.events();
  events.other_token = [&](const fleet::JoinToken& token) { launch.join.token = token, again = true; };
  const Status status = run_interruptibly(*sink, [&](runtime::StopSource& stop) {
    Status end = runtime::join(options, models, events, stop);
    asked_to_stop = stop.requested();
    return end;
  });
  if (again && !asked_to_stop) return 0;
  const bool gone = !status && options.patience && status.error().code == ErrorCode::network;
  const bool other = status && models.run_of_head() != script.run;
  if (!other && (status || gone)) sink->take(report::Note{cli::left_text(display)});
  say_all(*sink);
  if (asked_to_stop || gone) return std::nullopt;
  raise_if(status);
  return models.run_of_head();
}

// What fetch_script() gets of the head once it trains, or no bytes, where its run ended first; empty: this machine
// left, or nothing has answered for so long.
std::optional<nb::bytes> fetch(cli::Launch& launch, double patience) {
  const std::unique_ptr<cli::Output> sink = cli::make_output(launch.json, true);
  cli::JoinDisplay display(*sink);
  runtime::JoinEvents events = display.events();
  bool again = false;
  events.note = {};
  events.other_token = [&](const fleet::JoinToken& token) { launch.join.token = token, again = true; };
  runtime::JoinOptions options = launch.join;
  options.patience = patience_of(patience);
  SharedBytes files;
  bool asked_to_stop = false;
  const Status status = run_interruptibly(*sink, [&](runtime::StopSource& stop) {
    Result<SharedBytes> fetched = runtime::fetch_script(options, events, stop);
    asked_to_stop = stop.requested();
    if (!fetched) return Status(fetched.error());
    files = std::move(*fetched);
    return Status();
  });
  const ErrorCode code = status ? ErrorCode::interrupted : status.error().code;
  if (again && !asked_to_stop) return nb::bytes("", 0);
  if (asked_to_stop || code == ErrorCode::network || code == ErrorCode::refused) return std::nullopt;
  if (code != ErrorCode::interrupted) raise_if(status);
  const auto bytes = files.bytes();
  return nb::bytes(bytes.data(), bytes.size());
}

// A script that was started without the command may be one of several ranks as well.
void take_rank(cli::Launch& launch) {
  const std::unique_ptr<cli::Output> sink = cli::make_output(launch.json, true);
  raise_if(run_interruptibly(*sink, [&](runtime::StopSource& stop) { return cli::take_rank(launch, stop, *sink); }));
}

std::vector<std::string> chosen_devices(cli::Launch& launch, const Script& script) {
  const ScriptModels models(std::make_shared<const Script>(script));
  const std::vector<runtime::Device> chosen = value_or_raise(runtime::choose_devices(models, launch.devices()));
  std::vector<std::string> names;
  for (const runtime::Device& device : chosen) names.push_back(device.name);
  return names;
}

// Real steps of a script, behind a door that others join by: work(options, models, sink, stop). `workers`: of this
// machine. `begun` gets the token when they can join.
template <class Work>
void measure(const cli::Launch& launch, const Script& script, const std::string& config, std::size_t workers,
             const nb::callable& begun, const Work& work) {
  keep_freed_memory();
  ScriptModels models(std::make_shared<const Script>(script));
  const std::unique_ptr<cli::Output> sink = cli::make_output(launch.json, true);
  runtime::PlanOptions options = launch.head;
  options.train.target = launch.name();
  options.train.text = config;
  options.train.join_with = launch.join_with();
  std::vector<std::string>& overrides = options.train.overrides;
  overrides.insert(overrides.begin(), "train.min_workers=" + std::to_string(std::max<std::size_t>(1, workers)));
  std::exception_ptr raised;
  const Status status = run_interruptibly(*sink, [&](runtime::StopSource& stop) {
    options.begun = [&](const fleet::JoinToken& token) {
      const nb::gil_scoped_acquire gil;
      try {
        begun(fleet::to_text(token));
      } catch (const nb::python_error&) {
        raised = std::current_exception();
        stop.request();
      }
    };
    return work(options, models, *sink, stop);
  });
  if (raised) std::rethrow_exception(raised);
  say_all(*sink);
  raise_if(status);
}

void plan(const cli::Launch& launch, const Script& script, const std::string& config, std::size_t workers,
          const nb::callable& begun) {
  measure(launch, script, config, workers, begun, runtime::plan);
}

std::string auto_mode(cli::Launch& launch, const Script& script, const std::string& config, std::size_t workers,
                      const nb::callable& begun) {
  if (launch.head.train.reception == nullptr) launch.head.train.reception = std::make_shared<runtime::Reception>();
  std::string chosen;
  measure(launch, script, config, workers, begun,
          [&](const runtime::PlanOptions& options, ScriptModels& models, cli::Output& sink, runtime::StopSource& stop) {
            const auto mode = runtime::auto_mode(options.train, models, sink, stop, options.begun);
            if (!mode) return Status(mode.error());
            chosen = mode->value_or("");
            return Status();
          });
  return chosen;
}

}  // namespace

void say_all(cli::Output& output) {
  constexpr std::chrono::milliseconds kLookForSignals{50};
  for (;;) {
    {
      const nb::gil_scoped_release no_gil;
      if (output.flush(kLookForSignals)) return;
    }
    if (PyErr_CheckSignals() == 0) continue;
    output.hurry();
    throw nb::python_error();
  }
}

void bind_worker(nb::module_& m) {
  m.def("serve", &serve, nb::arg("launch"), nb::arg("script"), nb::arg("patience"));
  m.def("fetch", &fetch, nb::arg("launch"), nb::arg("patience"));
  m.def("take_rank", &take_rank, nb::arg("launch"));
  m.def("chosen_devices", &chosen_devices, nb::arg("launch"), nb::arg("script"));
  m.def("plan", &plan, nb::arg("launch"), nb::arg("script"), nb::arg("config"), nb::arg("workers"), nb::arg("begun"));
  m.def("auto_mode", &auto_mode, nb::arg("launch"), nb::arg("script"), nb::arg("config"), nb::arg("workers"),
        nb::arg("begun"));
}

}  // namespace motley::python
