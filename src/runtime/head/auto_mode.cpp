#include "runtime/head/auto_mode.h"

#include <utility>

#include "base/assert.h"
#include "runtime/head/measuring.h"
#include "runtime/head/plan_modes.h"
#include "store/run_dir.h"

namespace motley::runtime {
namespace {

constexpr std::size_t kRunFileBytesMax = 1U << 20;

Result<std::string> mode_kept(const TrainOptions& options) {
  const Result<store::RunDir> kept = store::RunDir::open(options.run_dir, true);
  if (!kept) return kept.error();
  const Result<std::string> text = kept->read_file("run.toml", kRunFileBytesMax);
  if (!text) return text.error();
  const Result<config::RunConfig> config = config::parse_kept(*text, options.run_dir + "/run.toml");
  if (!config) return config.error();
  return config->mode;
}

}  // namespace

Result<std::optional<std::string>> auto_mode(const TrainOptions& options, ModelProvider& provider, report::Sink& sink,
                                             StopSource& stop, std::function<void(const fleet::JoinToken&)> begun) {
  MOTLEY_ASSERT(options.reception != nullptr);
  using Chosen = std::optional<std::string>;
  if (options.resume && options.target.empty()) return Chosen();  // as its run file says
  const Result<config::RunConfig> asked = read_config(options);
  if (!asked) return asked.error();
  if (asked->mode != "auto") return Chosen();
  if (options.resume) {
    Result<std::string> kept = mode_kept(options);
    if (!kept) return kept.error();
    return Chosen(std::move(*kept));
  }
  sink.take(report::Note{"train.mode=auto measures first, with steps of which nothing is kept"});
  const Result<Measured> measured =
      measure({.train = options, .begun = std::move(begun), .goes_on = true}, provider, sink, stop);
  if (!measured) return measured.error();
  const report::ModeChosen chosen = choose_mode(*measured, measured->batches.front());
  sink.take(chosen);
  return Chosen(chosen.mode);
}

}  // namespace motley::runtime
