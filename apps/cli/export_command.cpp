#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "checkpoint_source.h"
#include "commands.h"
#include "runtime/inputs.h"

namespace motley::cli {
namespace {

namespace fs = std::filesystem;

struct ExportArguments {
  std::string source, target;
};

Status copy_safetensors(const ExportArguments& arguments, const store::CheckpointContent& content) {
  const fs::path source(arguments.source);
  char step[32];
  std::snprintf(step, sizeof step, "step-%09llu", static_cast<unsigned long long>(content.step));
  const fs::path directory = is_checkpoint(source) ? source : source / "checkpoints" / step;
  const fs::path fresh = arguments.target + ".new";
  std::error_code code;
  fs::copy_file(directory / "model.safetensors", fresh, fs::copy_options::overwrite_existing, code);
  if (!code) fs::rename(fresh, arguments.target, code);
  if (code) return Error{ErrorCode::io, arguments.target + ": " + code.message(), "choose another place"};
  return {};
}

Status run_export(const ExportArguments& arguments, Context& context) {
  Result<store::CheckpointContent> content = read_source(arguments.source, *context.sink);
  if (!content) return content.error();
  const std::string extension = fs::path(arguments.target).extension().string();
  Status status;
  if (extension == ".safetensors") {
    status = copy_safetensors(arguments, *content);
  } else if (extension == ".pt") {
    Result<config::RunConfig> config = config::parse(content->config, arguments.source);
    if (!config) return config.error();
    runtime::ModelInputs inputs;
    inputs.config = &*config;
    const fs::path source(arguments.source);
    const fs::path run = is_checkpoint(source) ? source / ".." / ".." : source;
    status = runtime::load_model_file(*config, run / runtime::kModelFile, inputs);
    if (status && (!context.torch || context.torch->version().empty()))
      status = no_torch("TorchScript export of " + config->model_kind, context.torch.get());
    if (status) {
      status = context.torch->export_torchscript(spec_of(*config, inputs.file, *content), content->layout,
                                                 content->weights, content->frozen, content->step, arguments.target);
    }
  } else {
    return Error{ErrorCode::usage,
                 arguments.target + ": expected a name that ends in .pt (TorchScript) or .safetensors", "model.pt"};
  }
  if (!status) return status;
  if (context.json) {
    print_json_line(
        nlohmann::ordered_json{{"event", "export"}, {"step", content->step}, {"path", arguments.target}}.dump());
  } else {
    std::printf("step %llu written to %s\n", static_cast<unsigned long long>(content->step), arguments.target.c_str());
  }
  return {};
}

}  // namespace

void add_export(CLI::App& app, Command& chosen) {
  auto arguments = std::make_shared<ExportArguments>();
  CLI::App* command = app.add_subcommand("export", "write a run's model as TorchScript (.pt) or safetensors");
  command->footer(
      "With the Python package, of a script's run: --torch FILE.pt, for torch.load, with the optimizer's state");
  command->add_option("run", arguments->source, "a run's directory, or one of its checkpoints")->required();
  command->add_option("file", arguments->target, "FILE.pt or FILE.safetensors")->required();
  command->callback(
      [&chosen, arguments] { chosen = [arguments](Context& context) { return run_export(*arguments, context); }; });
}

}  // namespace motley::cli
