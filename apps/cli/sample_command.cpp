#include <cstdio>
#include <nlohmann/json.hpp>

#include "checkpoint_source.h"
#include "commands.h"
#include "readable.h"

namespace motley::cli {
namespace {

constexpr double kTemperatureMax = 100;

struct SampleArguments {
  std::string source;
  builtin::SampleRequest options;
};

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

Status run_sample(const SampleArguments& arguments, Context& context) {
  builtin::SampleRequest options = arguments.options;
  const bool in_range = options.temperature >= 0 && options.temperature <= kTemperatureMax;  // NaN is not
  if (!in_range) {
    return Error{ErrorCode::usage,
                 "--temperature: expected a number from 0 to 100, found " + std::to_string(options.temperature),
                 "0 takes the likeliest byte each time, 1 follows the model, more is wilder"};
  }
  const Result<store::CheckpointContent> content = read_source(arguments.source, *context.sink);
  if (!content) return content.error();
  const Result<config::RunConfig> config = config::parse(content->config, arguments.source);
  if (!config) return config.error();
  if (config->model_kind != "gpt-mini") {
    return Error{ErrorCode::input,
                 arguments.source + ": expected a run of gpt-mini, found one of " + config->model_kind +
                     ", which writes no text",
                 "motley export RUN model.pt takes any model out of its run"};
  }
  if (!context.torch || context.torch->version().empty()) return no_torch(config->model_kind, context.torch.get());
  const std::string prompt = options.prompt;
  if (options.prompt.empty()) options.prompt = "\n";  // a model needs a byte to go on from; a text begins after one
  std::string text;
  Readable readable;
  const auto say = [&](const std::string& bytes) {
    for (const char byte : bytes) print(readable.add(byte));
  };
  if (!context.json) say(prompt);
  Status status = context.torch->sample_text(spec_of(*config, {}, *content), content->layout, content->weights, options,
                                             [&](char byte) {
                                               text += byte;
                                               if (!context.json) say({byte});
                                               return !context.stop.requested();
                                             });
  if (!context.json) print(readable.finish() + "\n");
  if (!status) return status;
  if (context.stop.requested()) return Error{ErrorCode::interrupted, "interrupted", ""};
  if (context.json) {
    const nlohmann::ordered_json event{
        {"event", "sample"}, {"step", content->step}, {"prompt", prompt}, {"text", text}};
    print_json_line(event.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  return {};
}

}  // namespace

void add_sample(CLI::App& app, Command& chosen) {
  auto arguments = std::make_shared<SampleArguments>();
  builtin::SampleRequest& options = arguments->options;
  CLI::App* command = app.add_subcommand("sample", "let a trained gpt-mini go on with a text");
  command->add_option("run", arguments->source, "a run's directory, or one of its checkpoints")->required();
  command->add_option("--prompt", options.prompt, "TEXT to go on with (default: the start of a line)");
  command->add_option("--bytes", options.bytes, "how many to write")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 30))
      ->capture_default_str();
  command->add_option("--temperature", options.temperature, "0: the likeliest byte each time; 1: as the model has it")
      ->capture_default_str();
  command->add_option("--top-k", options.top_k, "draw from so many likeliest bytes; 0: from all")
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{256}))
      ->capture_default_str();
  command->add_option("--seed", options.seed, "the same seed draws the same text")->capture_default_str();
  command->callback(
      [&chosen, arguments] { chosen = [arguments](Context& context) { return run_sample(*arguments, context); }; });
}

}  // namespace motley::cli
