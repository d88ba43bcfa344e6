#include "commands.h"
#include "manners_options.h"
#include "runtime/train.h"

namespace motley::cli {

void add_train(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<runtime::TrainOptions>();
  auto keys = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("train", "train a model on this machine and on those that join");
  command->add_option(
      "target", options->target,
      "a recipe (fashion-cnn, mnist-cnn, mlp, softmax, gpt-mini), a run file (RUN.toml) or a Python script");
  command->add_option("--set", options->overrides, "KEY=VALUE: override a key of the run; may be repeated")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  command->add_flag("--keys", *keys, "list the keys and their defaults, then leave");
  command->add_option("--run", options->run_dir, "DIR: where the run's files go (default: runs/NAME-1, -2, …)");
  command->add_flag("--resume", options->resume, "go on with the run in --run DIR");
  command->add_option("--listen", options->listen,
                      "ADDRESS:PORT where workers join (default: every address, port 7117 or a free one)");
  command->add_option("--token-file", options->token_file,
                      "write the join token to FILE (mode 0600) instead of printing it");
  command->add_flag("--plaintext", options->plaintext, "no encryption: for benchmarks on a network that is all yours");
  command->add_option("--device", options->devices, "cpu, cuda:0, mps or none; may be repeated")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  command->add_option("--threads", options->threads, "CPU threads of a CPU worker")->check(CLI::Range(1U, 4096U));
  command->add_option("--name", options->name, "name of this machine");
  add_manners(*command, options->manners);
  command->callback([&chosen, options, keys] {
    chosen = [options, keys](Context& context) -> Status {
      if (*keys) {
        for (const std::string& line : runtime::describe_keys()) std::printf("%s\n", line.c_str());
        return {};
      }
      if (options->target.empty() && !options->resume) {
        return Error{ErrorCode::usage, "train what? expected a recipe, a run file or a Python script",
                     "motley train fashion-cnn"};
      }
      if (is_script(options->target)) {
        return hand_over(context, {.role = Role::train, .script = options->target, .head = {.train = *options}});
      }
      return runtime::train(*options, *context.models, *context.observer, context.stop);
    };
  });
}

}  // namespace motley::cli
