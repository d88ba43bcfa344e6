#include "runtime/worker/shared_inputs.h"

#include <utility>

#include "data/uri.h"
#include "runtime/inputs.h"
#include "runtime/wire_cost.h"
#include "runtime/worker/machine_key.h"
#include "runtime/worker/offered_data.h"
#include "transport/addresses.h"

namespace motley::runtime {

void SharedInputs::stop() {
  const std::lock_guard lock(fetch_mutex_);
  stops_ = true;
  if (fetch_) fetch_->stop();
}

Result<PreparedWorker> SharedInputs::prepare(const wire::RunSpec& spec, const SharedBytes& model_file,
                                             const std::string& device) {
  const std::lock_guard lock(mutex_);
  if (!loaded_ || spec_ != spec) {
    if (Status status = load(spec, model_file); !status) return status.error();
  }
  Result<PreparedWorker> worker = prepare_worker(provider_, inputs_, device, options_.threads, kCopiesOfWorker);
  if (worker && config::leaves_codec_open(config_))
    worker->wire_cost = measure_end_cost(!options_.token.plaintext, device, options_.threads);
  return worker;
}

Status SharedInputs::load(const wire::RunSpec& spec, const SharedBytes& model_file) {
  loaded_ = false;
  Result<config::RunConfig> config = config::parse(spec.config, "the run's configuration", options_.overrides);
  if (!config) return config.error();
  config_ = std::move(*config);
  if (Status status = bring_data(); !status) return status;
  if (!spec.model_sha256.empty() && transport::sha256_hex(model_file.bytes()) != spec.model_sha256) {
    return Error{ErrorCode::protocol, "the model file arrived damaged: its SHA-256 is not " + spec.model_sha256,
                 "join again"};
  }
  Result<ModelInputs> inputs = provider_.load(config_, events_.download);
  if (!inputs) return inputs.error();
  inputs_ = std::move(*inputs);
  inputs_.config = &config_;
  inputs_.file = model_file;
  spec_ = spec;
  loaded_ = true;
  return {};
}

Status SharedInputs::bring_data() {
  const OfferedData offered{options_.data_directories, options_.overrides};
  Status allowed = check_offered(config_, offered);
  const bool script = config_.model_kind == config::kScriptKind;
  const bool train = script || is_own("data.uri", config_.data_uri, offered);
  const bool test = script || is_own("data.test_uri", config_.data_test_uri, offered);
  if (train && test) return allowed;
  const bool same =
      config_.data_test_uri == config_.data_uri || data::same_text(config_.data_uri, config_.data_test_uri);
  const std::string test_place = same ? "train" : "test";
  if (!kept_) {
    if (Status fetched = fetch_data(); !fetched) return fetched;
  }
  const KeptSet& set = *kept_;
  Result<std::string> test_here = test ? config_.data_test_uri : uri_here(set, config_.data_test_uri, test_place);
  if (!test_here) return test_here.error();
  Result<std::string> train_here = train ? config_.data_uri : uri_here(set, config_.data_uri, "train");
  if (!train_here) return train_here.error();
  config_.data_uri = std::move(*train_here);
  config_.data_test_uri = std::move(*test_here);
  return {};
}

Status SharedInputs::fetch_data() {
  const std::filesystem::path cache = cache_directory();
  if (cache.empty())
    return Error{ErrorCode::io, "the head's data are kept below this user's home, and there is none",
                 "MOTLEY_CACHE=DIR motley join"};
  const auto progress = [this](std::uint64_t done, std::uint64_t total) {
    if (events_.download) events_.download("the head's data", done, total);
  };
  DataFetch fetch(options_.token, options_.name.empty() ? transport::machine_name() : options_.name,
                  machine_identity(key_file()), cache / "data", progress);
  {
    const std::lock_guard lock(fetch_mutex_);
    fetch_ = &fetch;
    if (stops_) fetch.stop();
  }
  Result<KeptSet> fetched = fetch.run();
  {
    const std::lock_guard lock(fetch_mutex_);
    fetch_ = nullptr;
  }
  if (fetched) {
    kept_.emplace(std::move(*fetched));
    return {};
  }
  Status allowed = check_offered(config_, {options_.data_directories, options_.overrides});
  return fetch.offers_none() && !allowed ? allowed : Status(fetched.error());
}

}  // namespace motley::runtime
