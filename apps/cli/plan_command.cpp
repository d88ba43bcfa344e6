#include "commands.h"
#include "resource_policy_options.h"

namespace motley::cli {

void add_plan(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<runtime::PlanOptions>();
  auto file = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("plan", "measure this machine and those that join, and say what training on them would gain");
  runtime::TrainOptions& train = options->train;
  command->add_option("target", train.target, "softmax, a recipe or a Python script, and its arguments, as for train")
      ->required();
  command->add_option("--set", train.overrides, "KEY=VALUE: override a key of the run; may be repeated")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  add_config(*command, *file);
  command
      ->add_option("--batch", options->global_batches,
                   "a global batch to plan for; may be repeated (default: the run's)")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false)
      ->check(CLI::Range(1U, 1U << 24));
  command->add_option("--seconds", options->seconds, "how long to measure after the last machine joined (default: 10)")
      ->check(CLI::Range(1.0, 3600.0));
  command->add_option("--listen", train.listen, "ADDRESS:PORT where workers join");
  command->add_option("--token-file", train.token_file,
                      "write the join token to FILE, until the end, instead of printing it");
  command->add_option("--device", train.devices, "cpu, cuda:0, mps or none; may be repeated")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  command->add_option("--threads", train.threads, "CPU threads of a CPU worker")->check(CLI::Range(1U, 4096U));
  add_name(*command, train.name);
  command->callback([&chosen, options, file] {
    chosen = [options, file](Context& context) -> Status {
      if (Status taken = take_config(*file, options->train.overrides); !taken) return taken;
      return start({.role = Role::plan, .head = *options}, context);
    };
  });
}

}  // namespace motley::cli
