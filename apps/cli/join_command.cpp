#include <fstream>
#include <iostream>
#include <mutex>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "manners_options.h"
#include "runtime/join.h"

namespace motley::cli {
namespace {

struct JoinArguments {
  std::string token, token_file;
  runtime::JoinOptions options;
};

// The token: the argument, a file that holds it, or standard input ("-").
Result<cluster::JoinToken> read_token(const JoinArguments& arguments, Context& context) {
  if (!arguments.token_file.empty()) {
    return runtime::wait_for_token_file(arguments.token_file, context.stop,
                                        [&](const std::string& text) { context.observer->note(text); });
  }
  std::string text = arguments.token;
  if (text == "-") {
    std::getline(std::cin, text);
  } else if (std::ifstream file(text); text.size() < 200 && file) {
    std::getline(file, text);
  }
  return cluster::parse_token(text);
}

Status run_join(JoinArguments& arguments, Context& context) {
  if (arguments.token.empty() == arguments.token_file.empty()) {
    return Error{ErrorCode::usage, "join what? expected a token or --token-file FILE", "motley join motley1.…"};
  }
  Result<cluster::JoinToken> token = read_token(arguments, context);
  if (!token) return token.error();
  arguments.options.token = std::move(*token);
  std::mutex mutex;  // workers report from their own threads
  observe::Observer& observer = *context.observer;
  runtime::JoinEvents events;
  events.note = [&](const std::string& text) {
    const std::lock_guard lock(mutex);
    observer.note(text);
  };
  std::map<std::string, bool> before;
  events.link = [&](const std::string& worker, const std::string& device, runtime::LinkChange link,
                    const std::string& why) {
    const std::lock_guard lock(mutex);
    const bool joined = link == runtime::LinkChange::joined;
    const std::string lost = link == runtime::LinkChange::left ? "left" : "lost";
    const std::string change = joined ? (before[worker] ? "readmitted" : "joined") : lost;
    before[worker] = before[worker] || joined;
    observer.worker({worker, worker.substr(0, worker.rfind('/')), device, "", change, why});
  };
  std::uint64_t samples_in_all = 0;
  std::map<std::string, std::uint64_t> steps;
  events.step = [&](const std::string& worker, std::uint64_t version, std::uint64_t samples) {
    const std::lock_guard lock(mutex);
    samples_in_all += samples;
    if (++steps[worker] % 50 == 0) {
      observer.note(worker + ": step " + std::to_string(version) + ", " + std::to_string(samples_in_all) +
                    " samples so far");
    }
  };
  events.download = [&](const std::string& file, std::uint64_t done, std::uint64_t total) {
    const std::lock_guard lock(mutex);
    observer.download(file, done, total);
  };
  Status status = runtime::join(arguments.options, *context.models, events, context.stop);
  if (status) observer.note("left; " + std::to_string(samples_in_all) + " samples computed here");
  return status;
}

}  // namespace

void add_join(CLI::App& app, Command& chosen) {
  auto arguments = std::make_shared<JoinArguments>();
  CLI::App* command = app.add_subcommand("join", "lend this machine's devices to a run");
  command->add_option("token", arguments->token,
                      "the token that `motley train` printed; a file that holds it; or - for standard input");
  command->add_option("--token-file", arguments->token_file, "wait for FILE and read the token in it");
  command->add_option("--device", arguments->options.devices, "cpu, cuda:0 or mps; may be repeated")
      ->expected(1)
      ->take_all();
  command->add_option("--threads", arguments->options.threads, "CPU threads of a CPU worker")
      ->check(CLI::Range(1U, 4096U));
  command->add_option("--name", arguments->options.name, "name of this machine");
  add_manners(*command, arguments->options.manners);
  add_yielding(*command, arguments->options.yield);
  command
      ->add_option("--set", arguments->options.overrides, "data.KEY=VALUE where the data are elsewhere on this machine")
      ->expected(1)
      ->take_all();
  command->callback(
      [&chosen, arguments] { chosen = [arguments](Context& context) { return run_join(*arguments, context); }; });
}

}  // namespace motley::cli
