// The `motley` program, from its arguments to its exit status.

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "base/nearest.h"
#include "base/shell.h"
#include "commands.h"
#include "config/settings_file.h"
#include "fleet/token.h"
#include "machine/arguments.h"
#include "output.h"
#include "program.h"
#include "ranks.h"
#include "runtime/head/train.h"
#include "signals.h"

namespace motley::cli {
namespace {

constexpr std::string_view kSoftmax = "softmax";
constexpr std::array<std::string_view, 12> kCommands{"train", "plan",   "join",   "invite", "revoke", "devices",
                                                     "audit", "export", "sample", "doctor", "env",    "bench"};

// Wrong usage is an error like any other: exit status 2, and an event with --json.
int usage_error(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
  bool json = false;
  for (int i = 1; i < argc; ++i) json = json || std::string_view(argv[i]) == "--json";
  Error problem{ErrorCode::usage, error.what(), "motley --help"};
  if (argc > 1 && argv[1][0] != '-') {
    const std::string close = nearest(argv[1], kCommands);
    bool known = false;
    for (const std::string_view command : kCommands) known = known || command == argv[1];
    if (!known) problem.message = std::string("there is no command '") + argv[1] + "'";
    if (!known && !close.empty()) problem.hint = "did you mean 'motley " + close + "'?";
    if (known) problem.hint = std::string("motley ") + argv[1] + " --help";
  }
  make_output(json)->take(report::Failure{problem});
  return exit_status(ErrorCode::usage);
}

using Words = std::vector<std::string>;

const CLI::Option* find_option(CLI::App& app, const std::string& command, const std::string& word) {
  if (!word.starts_with("--")) return nullptr;
  const std::string name = word.substr(2, word.find('=') - 2);
  std::vector<CLI::App*> apps = app.get_subcommands([&](const CLI::App* each) { return each->get_name() == command; });
  apps.push_back(&app);
  for (const CLI::App* each : apps) {
    for (const CLI::Option* option : each->get_options()) {
      if (option->check_lname(name)) return option;
    }
  }
  return nullptr;
}

bool takes_next(const CLI::Option* option, const std::string& word) {
  return option != nullptr && option->get_items_expected_max() > 0 && word.find('=') == std::string::npos;
}

// The target that has arguments of its own behind it; the end: there is none.
Words::iterator find_target(CLI::App& app, Words& words, Words::iterator command) {
  const bool joins = *command == "join";
  if (!joins && *command != "train" && *command != "plan") return words.end();
  for (auto word = command + 1; word != words.end() && *word != "--"; ++word) {
    if (const CLI::Option* option = find_option(app, *command, *word)) {
      if (takes_next(option, *word) && word + 1 != words.end()) ++word;
    } else if (is_script(*word) || (!joins && *word == kSoftmax)) {
      return word;
    } else if (!joins && !word->starts_with("-")) {
      return words.end();
    }
  }
  return words.end();
}

// Of the words behind a target, those that are no flags of the command; after "--" all of them. They are the target's.
Words take_script_arguments(CLI::App& app, Words& words) {
  const auto command = std::ranges::find_if(words, [](const std::string& word) { return !word.starts_with("-"); });
  if (command == words.end()) return {};
  const auto target = find_target(app, words, command);
  if (target == words.end()) return {};
  Words ours(words.begin(), target + 1);
  Words theirs;
  for (auto word = target + 1; word != words.end(); ++word) {
    if (*word == "--") {
      theirs.insert(theirs.end(), word + 1, words.end());
      break;
    }
    const CLI::Option* known = find_option(app, *command, *word);
    (known != nullptr ? ours : theirs).push_back(*word);
    if (takes_next(known, *word) && word + 1 != words.end()) ours.push_back(*++word);
  }
  words = std::move(ours);
  return theirs;
}

Error unknown_target(const std::string& target) {
  if (target.ends_with(".toml")) {
    return {ErrorCode::usage, target + ": a file of settings is no target",
            "motley train fashion-cnn --config " + in_shell(target)};
  }
  std::vector<std::string_view> known(kRecipes.begin(), kRecipes.end());
  known.push_back(kSoftmax);
  std::string list;
  for (const std::string_view name : known) list.append(list.empty() ? "" : ", ").append(name);
  const std::string meant = nearest(target, known);
  return {ErrorCode::usage, "'" + target + "' is neither a recipe (" + list + ") nor a Python script",
          meant.empty() ? "motley train fashion-cnn" : "did you mean '" + meant + "'?"};
}

// A script's run says in its own words which script it is.
bool is_run_of_script(const std::string& directory) {
  std::ifstream file(std::filesystem::path(directory) / "run.toml", std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  const Result<config::RunConfig> config = config::parse(text.str(), directory);
  return config && config->model_kind == config::kScriptKind;
}

// As an override of the run's keys: what softmax is told stands where a script's arguments do.
Status give_arguments(const Words& words, Words& overrides) {
  if (words.empty()) return {};
  try {
    overrides.insert(overrides.begin(), "model.arguments=" + nlohmann::json(words).dump());
  } catch (const nlohmann::json::type_error&) {
    return Error{ErrorCode::usage, "softmax: its arguments are not UTF-8", "motley train softmax samples=4096"};
  }
  return {};
}

int run(int argc, char** argv, const Services& services) {
  CLI::App app("Trains one PyTorch model on every machine you own.", "motley");
  app.set_version_flag("--version", "motley " MOTLEY_VERSION);
  app.require_subcommand(1);
  app.footer("  sample                      let a trained gpt-mini go on with a text; motley sample --help");
  app.fallthrough();
  Context context;
  context.models = make_models();
  context.torch = services.torch;
  app.add_flag("--json", context.json, "print one JSON event a line on standard output");
  Command chosen;
  add_train(app, chosen);
  add_plan(app, chosen);
  add_join(app, chosen);
  add_invite(app, chosen);
  add_revoke(app, chosen);
  add_devices(app, chosen);
  add_audit(app, chosen);
  add_export(app, chosen);
  add_doctor(app, chosen);
  add_env(app, chosen);
  add_bench(app, chosen);
  std::vector<std::string> words(argv + 1, argv + argc);
  context.script_arguments = take_script_arguments(app, words);
  std::reverse(words.begin(), words.end());  // as CLI11 wants them
  try {
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    return usage_error(app, error, argc, argv);
  }
  machine::hide_arguments(fleet::JoinToken::kPrefix);
  context.python = services.python;
  context.replace_sink(make_output(context.json));
  Status status;
  {
    const SignalThread signals([&context] {
      context.stop.request();
      context.hurry();
    });
    status = chosen(context);
  }
  if (status) return context.launch ? services.run_script(*context.launch) : 0;
  context.sink->take(report::Failure{status.error()});
  return exit_status(status.error().code);
}

}  // namespace

std::string Launch::join_with() const {
  if (!recipe.empty()) return {};
  std::string words = in_shell(std::filesystem::path(script).filename().string());
  if (std::ranges::any_of(arguments, [](const std::string& word) { return word.starts_with("-"); })) words += " --";
  return arguments.empty() ? words : words + " " + in_shell(arguments);
}

std::vector<std::string>& Launch::devices() { return role == Role::join ? join.devices : head.train.devices; }

std::vector<std::string> Launch::join_options() const {
  const runtime::JoinOptions as = role == Role::join ? join : as_join(head.train);
  std::vector<std::string> words{"--share", formatted("%.9g", as.resource_policy.duty), "--nice",
                                 std::to_string(as.resource_policy.nice), "--no-keep-awake"};  // this process does that
  const auto add = [&words](const char* option, const std::string& value) {
    words.emplace_back(option);
    words.push_back(value);
  };
  if (!as.name.empty()) add("--name", as.name);
  if (as.threads > 0) add("--threads", std::to_string(as.threads));
  if (as.yield.battery_pauses) add("--battery", "pause");
  for (const std::string& setting : as.overrides) add("--set", setting);
  return words;
}

runtime::JoinOptions as_join(const runtime::TrainOptions& train) {
  runtime::JoinOptions join;
  join.devices = train.devices;
  join.threads = train.threads;
  join.name = train.name;
  join.resource_policy = train.resource_policy;
  return join;
}

int run_program(int argc, char** argv, const Services& services) {
  try {
    return run(argc, argv, services);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "motley: bug: %s\n", error.what());
    return 1;
  }
}

Status start(Launch launch, Context& context) {
  if (Status status = take_rank(launch, context.stop, *context.sink); !status) return status;
  if (launch.role == Role::join) {  // standard output is the head's
    context.json = false;
    context.replace_sink(make_output(false, true));
  }
  runtime::TrainOptions& train = launch.head.train;
  launch.script = train.target;
  const bool goes_on = launch.script.empty() && launch.role != Role::join;
  const bool of_script = goes_on ? is_run_of_script(train.run_dir) : is_script(launch.script);
  if (of_script) return hand_over(context, std::move(launch));
  if (!launch.script.empty() && launch.script != kSoftmax) return unknown_target(launch.script);
  if (Status given = give_arguments(context.script_arguments, train.overrides); !given) return given;
  if (launch.role == Role::join) return lend(launch.join, context);
  if (launch.role == Role::plan) return runtime::plan(launch.head, *context.models, *context.sink, context.stop);
  return runtime::train(train, *context.models, *context.sink, context.stop);
}

bool is_recipe(std::string_view target) { return std::ranges::find(kRecipes, target) != kRecipes.end(); }

bool is_script(const std::string& target) { return target.ends_with(".py") || is_recipe(target); }

void add_config(CLI::App& command, std::string& file) {
  command.add_option("--config", file, "FILE.toml: keys of the run, as --set takes them; what --set says counts");
}

Status take_config(const std::string& file, std::vector<std::string>& overrides) {
  if (file.empty()) return {};
  const Result<std::vector<std::string>> settings = config::read_settings(file);
  if (!settings) return settings.error();
  overrides.insert(overrides.begin(), settings->begin(), settings->end());
  return {};
}

std::string absolute(const std::string& path) {
  std::error_code failure;
  const std::filesystem::path whole = path.empty() ? "" : std::filesystem::absolute(path, failure);
  return failure || path.empty() ? path : whole.lexically_normal().string();
}

Status hand_over(Context& context, Launch launch) {
  launch.here = launch.head.train.here = absolute(".");
  for (std::string* path : {&launch.head.train.run_dir, &launch.head.train.token_file, &launch.join.token_file})
    *path = absolute(*path);
  if (is_recipe(launch.script)) launch.recipe = launch.script;
  launch.json = context.json;
  launch.arguments = context.script_arguments;
  context.launch = std::move(launch);
  return {};
}

void print_json_line(const std::string& object) {
  std::fwrite(object.data(), 1, object.size(), stdout);
  std::fputc('\n', stdout);
  std::fflush(stdout);
}

}  // namespace motley::cli
