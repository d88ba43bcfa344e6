// The `motley` command, and what it hands to a script.

#include <nanobind/stl/function.h>
#include <nanobind/stl/shared_ptr.h>

#include "bindings.h"
#include "output.h"
#include "program.h"
#include "python_torch_facts.h"
#include "runtime/head/block_desk.h"
#include "runtime/head/reception.h"

namespace motley::python {
namespace {

/// `torch` outlives the command, so it is borrowed: it may be called without the GIL.
int run_command(std::vector<std::string> arguments, const nb::callable& run_script, const nb::callable& torch) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const std::string said = Py_GetVersion();  // "3.11.2 (main, …) [GCC 12.2.0]"
  const std::string python = said.substr(0, said.find(' '));
  std::optional<cli::Launch> launch;
  int status = 0;
  {
    const nb::gil_scoped_release no_gil;
    const auto keep = [&launch](const cli::Launch& asked) {
      launch = asked;
      return 0;
    };
    status = cli::run_program(static_cast<int>(arguments.size()), argv.data(),
                              {.run_script = keep, .torch = python_torch_facts(torch), .python = python});
  }
  if (!launch) return status;
  return nb::cast<int>(run_script(nb::cast(std::move(*launch))));
}

std::string role(const cli::Launch& launch) {
  return launch.role == cli::Role::train ? "train" : launch.role == cli::Role::plan ? "plan" : "join";
}

}  // namespace

void bind_program(nb::module_& m) {
  nb::class_<cli::Launch>(m, "Launch")
      .def(nb::init<>())
      .def_prop_ro("role", &role)
      .def_ro("json", &cli::Launch::json)
      .def_prop_ro("resumed",
                   [](const cli::Launch& launch) {
                     const runtime::TrainOptions& train = launch.head.train;
                     return launch.role == cli::Role::train && train.resume ? train.run_dir : std::string();
                   })
      .def("keep_door",
           [](cli::Launch& launch) { launch.head.train.reception = std::make_shared<runtime::Reception>(); })
      .def("offer", [](cli::Launch& launch,
                       std::shared_ptr<runtime::Offers> offers) { launch.head.train.offers = std::move(offers); })
      .def("close_door",
           [](cli::Launch& launch) {
             const nb::gil_scoped_release no_gil;
             if (launch.head.train.reception) launch.head.train.reception->close();
           })
      .def("go_on",
           [](cli::Launch& launch, const std::string& directory, bool resume) {
             launch.head.train.run_dir = directory;
             launch.head.train.resume = resume;
           })
      .def_prop_rw(
          "overrides", [](const cli::Launch& launch) { return launch.head.train.overrides; },
          [](cli::Launch& launch, std::vector<std::string> words) { launch.head.train.overrides = std::move(words); })
      .def_rw("script", &cli::Launch::script)
      .def_rw("recipe", &cli::Launch::recipe)
      .def_ro("here", &cli::Launch::here)
      .def_rw("arguments", &cli::Launch::arguments)
      .def_prop_ro("fetched",
                   [](const cli::Launch& launch) {
                     const auto bytes = launch.fetched.bytes();
                     return nb::bytes(bytes.data(), bytes.size());
                   })
      .def_ro("agreed", &cli::Launch::agreed)
      .def_ro("installs", &cli::Launch::installs)
      .def_prop_ro("token", [](const cli::Launch& launch) { return fleet::to_text(launch.join.token); })
      .def_prop_ro("idle_only", [](const cli::Launch& launch) { return launch.join.yield.idle_only; })
      .def_prop_ro("join_options", &cli::Launch::join_options)
      .def_prop_rw(
          "devices", [](cli::Launch& launch) { return launch.devices(); },
          [](cli::Launch& launch, std::vector<std::string> names) { launch.devices() = std::move(names); });
  m.attr("recipes") = nb::cast(std::vector<std::string>(cli::kRecipes.begin(), cli::kRecipes.end()));
  m.def(
      "report",
      [](bool json, const std::string& code, const std::string& message, const std::string& hint) {
        cli::make_output(json, true)->take(report::Failure{{code_of(code), message, hint}});
      },
      nb::arg("json"), nb::arg("code"), nb::arg("message"), nb::arg("hint"));
  m.def("run_command", &run_command, nb::arg("arguments"), nb::arg("run_script"), nb::arg("torch"));
}

}  // namespace motley::python
