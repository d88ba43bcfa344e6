#include "runtime/worker/shared_inputs.h"

#include <utility>

#include "runtime/inputs.h"
#include "runtime/wire_cost.h"

namespace motley::runtime {

Result<PreparedWorker> SharedInputs::prepare(const wire::RunSpec& spec, const std::string& device) {
  const std::lock_guard lock(mutex_);
  if (!loaded_ || spec_ != spec) {
    if (Status status = load(spec); !status) return status.error();
  }
  Result<PreparedWorker> worker = prepare_worker(provider_, inputs_, device, options_.threads, kCopiesOfWorker);
  if (worker && config::leaves_codec_open(config_))
    worker->wire_cost = measure_end_cost(!options_.token.plaintext, device, options_.threads);
  return worker;
}

Status SharedInputs::load(const wire::RunSpec& spec) {
  loaded_ = false;
  Result<config::RunConfig> config = config::parse(spec.config, "the run's configuration", options_.overrides);
  if (!config) return config.error();
  config_ = std::move(*config);
  Result<ModelInputs> inputs = provider_.load(config_);
  if (!inputs) return inputs.error();
  inputs_ = std::move(*inputs);
  spec_ = spec;
  loaded_ = true;
  return {};
}

}  // namespace motley::runtime
