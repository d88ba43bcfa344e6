#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "checkpoint_source.h"
#include "commands.h"

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
  if (fs::path(arguments.target).extension() != ".safetensors") {  // .pt is Python's
    return Error{ErrorCode::usage, arguments.target + ": expected a name that ends in .safetensors or .pt",
                 "model.safetensors"};
  }
  const Result<store::CheckpointContent> content = read_source(arguments.source, *context.sink);
  if (!content) return content.error();
  if (Status status = copy_safetensors(arguments, *content); !status) return status;
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
  CLI::App* command = app.add_subcommand(
      "export", "write a run's model as safetensors, or for torch.load (.pt), with its optimizer's state");
  command->add_option("run", arguments->source, "a run's directory, or one of its checkpoints")->required();
  command->add_option("file", arguments->target, "FILE.safetensors or FILE.pt")->required();
  command->callback(
      [&chosen, arguments] { chosen = [arguments](Context& context) { return run_export(*arguments, context); }; });
}

}  // namespace motley::cli
