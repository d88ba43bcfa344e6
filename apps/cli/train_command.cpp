#include "commands.h"
#include "durations.h"
#include "resource_policy_options.h"
#include "standard_streams.h"

namespace motley::cli {
namespace {

struct TrainArguments {
  runtime::TrainOptions options;
  bool keys = false, dry_run = false;
  std::string config;
  std::string on, address;  // the Python package takes these before they come here
};

Status run_train(const TrainArguments& arguments, Context& context) {
  runtime::TrainOptions options = arguments.options;
  if (arguments.keys) {
    for (const std::string& line : config::describe_keys()) std::printf("%s\n", line.c_str());
    return {};
  }
  if (!arguments.on.empty() || !arguments.address.empty()) {
    return Error{ErrorCode::usage, "--on and --address are for the motley of the Python package",
                 "pip install . and pip install ray; then motley train --on ray TARGET"};
  }
  if (options.target.empty() && !options.resume) {
    return Error{ErrorCode::usage, "train what? expected a recipe, softmax or a Python script",
                 "motley train fashion-cnn"};
  }
  if (Status taken = take_config(arguments.config, options.overrides); !taken) return taken;
  const bool at_terminal = !context.json && is_terminal(kOut);
  options.pair = options.pair || (at_terminal && !options.plaintext && !arguments.dry_run);
  return start({.role = arguments.dry_run ? Role::plan : Role::train, .head = {.train = options}}, context);
}

}  // namespace

void add_train(CLI::App& app, Command& chosen) {
  auto arguments = std::make_shared<TrainArguments>();
  runtime::TrainOptions* options = &arguments->options;
  CLI::App* command = app.add_subcommand("train", "train a model on this machine and on those that join");
  command->add_option(
      "target", options->target,
      "a recipe (fashion-cnn, mnist-cnn, mlp, gpt-mini, resnet), a Python script, or softmax, which needs no torch; "
      "behind it its own arguments");
  command->add_option("--set", options->overrides, "KEY=VALUE: override a key of the run; may be repeated")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  add_config(*command, arguments->config);
  command->add_flag("--keys", arguments->keys, "list the keys and their defaults, then leave");
  command->add_option("--run", options->run_dir, "DIR: where the run's files go (default: runs/NAME-1, -2, …)");
  CLI::Option* resume = command->add_flag("--resume", options->resume, "go on with the run in --run DIR");
  command->add_option("--listen", options->listen,
                      "ADDRESS:PORT where workers join (default: every address, port 7117 or a free one)");
  command->add_option("--token-file", options->token_file,
                      "write the join token to FILE (mode 0600), until the run is over, instead of printing it");
  add_expires(*command, options->token_good_for);
  command
      ->add_flag("--new-token", options->new_token,
                 "with --resume: a new token; with the old one nobody comes in any more")
      ->needs(resume);
  CLI::Option* plaintext = command->add_flag("--plaintext", options->plaintext,
                                             "no encryption: for benchmarks on a network that is all yours");
  command
      ->add_flag("--pair", options->pair,
                 "show an address and a code of six digits, by which a machine joins without the token, then the next "
                 "one; at a terminal that is done without it")
      ->excludes(plaintext);
  command->add_flag("--verbose", options->verbose, "show the token and all addresses of this machine beside the code");
  command
      ->add_flag("--dry-run", arguments->dry_run,
                 "train nothing: measure, and say what training would gain; as motley plan")
      ->excludes(resume)
      ->excludes("--pair");
  command->add_option("--device", options->devices, "cpu, cuda:0, mps or none; may be repeated")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  command->add_option("--threads", options->threads, "CPU threads of a CPU worker")->check(CLI::Range(1U, 4096U));
  add_name(*command, options->name);
  add_resource_policy(*command, options->resource_policy);
  command->add_option("--on", arguments->on, "ray: its nodes become workers (motley of the Python package)");
  command->add_option("--address", arguments->address, "of the Ray cluster (default: this machine's)");
  command->callback(
      [&chosen, arguments] { chosen = [arguments](Context& context) { return run_train(*arguments, context); }; });
}

}  // namespace motley::cli
