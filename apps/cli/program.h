#pragma once
// The program from its arguments to its exit status, and how it hands over to the user's Python.

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "report/sink.h"
#include "runtime/head/plan.h"
#include "runtime/model_provider.h"
#include "runtime/worker/join.h"
#include "torch_facts.h"

namespace motley::cli {

enum class Role : std::uint8_t { train, plan, join };

/// Scripts of the Python package, in motley/recipes: `motley train NAME` runs them.
inline constexpr std::array<std::string_view, 5> kRecipes{"fashion-cnn", "mnist-cnn", "mlp", "gpt-mini", "resnet"};

/// A command whose target is a Python script: the script brings model and data, and then does what is asked for here.
struct Launch {
  Role role = Role::train;
  bool json = false;
  std::string script{};                  // its path; of a recipe its name, and of a run that goes on perhaps neither
  std::string recipe{};                  // its name, where the script is one
  std::string here{};                    // the directory that it was started in
  std::vector<std::string> arguments{};  // of the script: whatever the command does not know
  runtime::PlanOptions head{};           // train and plan; train has head.train only
  runtime::JoinOptions join{};
  SharedBytes fetched{};  // instead of `script`: its files, packed; `agreed`: they are to run without asking
  bool agreed = false;
  bool installs = false;  // what they import
  /// By which its run is called.
  [[nodiscard]] const std::string& name() const { return recipe.empty() ? script : recipe; }
  /// What `motley join` says behind the token.
  [[nodiscard]] std::string join_with() const;
  /// As they were asked for.
  [[nodiscard]] std::vector<std::string>& devices();
  /// Options with which another `motley join` on this machine behaves as this launch; its devices are its own.
  [[nodiscard]] std::vector<std::string> join_options() const;
};
/// How the workers of such a head would join another.
runtime::JoinOptions as_join(const runtime::TrainOptions& train);
/// Runs the script; returns the exit status.
using ScriptRunner = std::function<int(const Launch&)>;

/// What the program gets from where it runs.
struct Services {
  ScriptRunner run_script;
  std::shared_ptr<TorchFacts> torch;  // not null
  std::string python;                 // the version of the Python that this runs in
};

/// No exception leaves it.
int run_program(int argc, char** argv, const Services& services);

/// Workers report to it from their own threads. REQUIRES `sink` outlives what is returned.
class JoinDisplay {
 public:
  explicit JoinDisplay(report::Sink& sink) : sink_(sink) {}
  runtime::JoinEvents events();
  [[nodiscard]] std::uint64_t samples() const { return samples_; }

 private:
  std::mutex mutex_;
  report::Sink& sink_;
  std::map<std::string, bool> before_;
  std::map<std::string, std::uint64_t> steps_;
  std::uint64_t samples_ = 0;
};
/// What is said when a worker of this machine has left in peace.
std::string left_text(const JoinDisplay& display);

}  // namespace motley::cli
