// A script's process as worker of somebody's run.

#include <thread>

#include "bindings.h"
#include "program.h"
#include "script_models.h"

namespace motley::python {
namespace {

/// Joins and serves until the run is over. Ctrl-C asks to leave; once more ends at once, as KeyboardInterrupt.
void serve(const cli::Launch& launch, const Script& script) {
  keep_freed_memory();
  ScriptModels models(std::make_shared<const Script>(script));
  const std::unique_ptr<observe::Observer> observer = cli::make_observer(launch.json, true);
  cli::JoinDisplay display(*observer);
  runtime::StopSource stop;
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Status> status;
  std::thread thread([&] {
    Status end = runtime::join(launch.join, models, display.events(), stop);
    const std::lock_guard lock(mutex);
    status = std::move(end);
    changed.notify_all();
  });
  const auto over = [&] { return status.has_value(); };
  try {
    wait_interruptibly(mutex, changed, over);
  } catch (nb::python_error& interrupted) {
    stop.request();
    try {
      wait_interruptibly(mutex, changed, over);
    } catch (nb::python_error& again) {
      std::_Exit(exit_status(ErrorCode::interrupted));
    }
    const nb::gil_scoped_release no_gil;
    thread.join();
  }
  if (thread.joinable()) {
    const nb::gil_scoped_release no_gil;
    thread.join();
  }
  if (*status) observer->note("left; " + std::to_string(display.samples()) + " samples computed here");
  raise_if(*status);
}

}  // namespace

void bind_worker(nb::module_& m) { m.def("serve", &serve, nb::arg("launch"), nb::arg("script")); }
void bind_files(nb::module_&) {}

}  // namespace motley::python
