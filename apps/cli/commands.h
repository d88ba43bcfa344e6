#pragma once
// The commands of the program: each adds itself to the parser and returns what runs it.

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <mutex>

#include "models.h"
#include "output.h"
#include "program.h"
#include "runtime/stop.h"

namespace motley::cli {

struct Context {
  bool json = false;
  runtime::StopSource stop;
  std::unique_ptr<runtime::ModelProvider> models;
  std::unique_ptr<Output> sink;       // made after parsing
  std::string python{};               // its version
  std::shared_ptr<TorchFacts> torch;  // not null
  std::vector<std::string> script_arguments;
  std::optional<Launch> launch;  // what the script is to be run for after the command

  /// Says the rest there; the commands' thread.
  void replace_sink(std::unique_ptr<Output> output) {
    {
      const std::lock_guard lock(mutex);
      std::swap(sink, output);
      if (hurried) sink->hurry();
    }
  }
  /// Somebody wants to leave. Any thread.
  void hurry() {
    const std::lock_guard lock(mutex);
    hurried = true;
    if (sink) sink->hurry();
  }
  std::mutex mutex;  // of `sink` as a pointer, and the next
  bool hurried = false;
};

using Command = std::function<Status(Context&)>;

/// Each registers a subcommand; its Command goes to `chosen` when the user picks it.
void add_train(CLI::App& app, Command& chosen);
void add_plan(CLI::App& app, Command& chosen);
void add_join(CLI::App& app, Command& chosen);
void add_invite(CLI::App& app, Command& chosen);
void add_revoke(CLI::App& app, Command& chosen);
void add_devices(CLI::App& app, Command& chosen);
void add_audit(CLI::App& app, Command& chosen);
void add_export(CLI::App& app, Command& chosen);
void add_doctor(CLI::App& app, Command& chosen);
void add_env(CLI::App& app, Command& chosen);
void add_bench(CLI::App& app, Command& chosen);

/// Whether a target is the name of a script that comes with the Python package.
bool is_recipe(std::string_view target);
/// Whether a target is a Python script, by its path or as a recipe.
bool is_script(const std::string& target);
/// --config FILE: what it says goes before what --set says.
void add_config(CLI::App& command, std::string& file);
Status take_config(const std::string& file, std::vector<std::string>& overrides);

/// Trains or plans, as this process's rank among those that a launcher started says.
Status start(Launch launch, Context& context);

/// As it is meant here and now: a script may go to another directory.
std::string absolute(const std::string& path);

/// Leaves the rest of the command to the script.
Status hand_over(Context& context, Launch launch);

/// `word`: the token, a file that holds it, or "-" for standard input; or `file`, which is waited for.
Result<fleet::JoinToken> read_token(const std::string& word, const std::string& file, Context& context);

/// Works for a run elsewhere until it is over.
Status lend(runtime::JoinOptions options, Context& context);

/// One JSON object a line on standard output.
void print_json_line(const std::string& object);

}  // namespace motley::cli
