#include "runtime/worker/shared_inputs.h"

#include <utility>

#include "base/thread_name.h"
#include "data/uri.h"
#include "runtime/inputs.h"
#include "runtime/wire_cost.h"
#include "runtime/worker/machine_key.h"
#include "runtime/worker/offered_data.h"
#include "transport/addresses.h"

namespace motley::runtime {

SharedInputs::SharedInputs(const JoinOptions& options, ModelProvider& provider, const JoinEvents& events,
                           std::shared_ptr<DataShare> share)
    : options_(options),
      provider_(provider),
      events_(events),
      share_(std::move(share)),
      stock_(options.stock ? options.stock : std::make_shared<SampleStock>()) {}

SharedInputs::~SharedInputs() {
  stop();
  if (filling_.joinable()) filling_.join();
}

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
  watch_.reset();
  Result<config::RunConfig> config = config::parse(spec.config, "the run's configuration", options_.overrides);
  if (!config) return config.error();
  config_ = std::move(*config);
  if (Status status = bring_data(); !status) return status;
  if (!spec.model_sha256.empty() && transport::sha256_hex(model_file.bytes()) != spec.model_sha256) {
    return Error{ErrorCode::protocol, "the model file arrived damaged: its SHA-256 is not " + spec.model_sha256,
                 "join again"};
  }
  Result<ModelInputs> inputs = provider_.load(config_, events_.download, coming());
  if (!inputs) return inputs.error();
  inputs_ = std::move(*inputs);
  inputs_.config = &config_;
  stock_->begin(config_.seed, config_.shuffle);
  watch_stock();
  inputs_.file = model_file;
  spec_ = spec;
  loaded_ = true;
  return {};
}

void SharedInputs::watch_stock() {
  const bool comes = inputs_.train->comes() || (inputs_.test != nullptr && inputs_.test->comes());
  if (!comes) return;
  watch_.emplace(inputs_.train, inputs_.test, config_.global_batch, stock_);
  watch_->start();
}

ComingData SharedInputs::coming() const {
  // Without a fingerprint nobody could tell the head what these data are: then they were fetched whole.
  if (!fetch_ || fetch_->was_whole() || !filling_.joinable()) return {};
  const auto open = [fetch = fetch_](const std::string& path) { return fetch->open(path); };
  return {open, fetch_->train_fingerprint(), fetch_->test_fingerprint()};
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
  if (!fetch_) {
    if (Status fetched = fetch_data(test_place); !fetched) return fetched;
  }
  const KeptSet& set = fetch_->set();
  Result<std::string> test_here = test ? config_.data_test_uri : uri_here(set, config_.data_test_uri, test_place);
  if (!test_here) return test_here.error();
  Result<std::string> train_here = train ? config_.data_uri : uri_here(set, config_.data_uri, "train");
  if (!train_here) return train_here.error();
  config_.data_uri = std::move(*train_here);
  config_.data_test_uri = std::move(*test_here);
  return {};
}

Status SharedInputs::fetch_data(const std::string& test_place) {
  const std::filesystem::path cache = cache_directory();
  if (cache.empty())
    return Error{ErrorCode::io, "the head's data are kept below this user's home, and there is none",
                 "MOTLEY_CACHE=DIR motley join"};
  const auto progress = [this](std::uint64_t done, std::uint64_t total) {
    if (events_.download) events_.download("the head's data", done, total);
  };
  auto fetch = std::make_shared<DataFetch>(
      options_.token, options_.name.empty() ? transport::machine_name() : options_.name, machine_identity(key_file()),
      cache / "data", DataFetch::Told{.progress = progress, .note = events_.note});
  {
    const std::lock_guard lock(fetch_mutex_);
    fetch_ = fetch;
    if (stops_) fetch->stop();
  }
  Status fetched = fetch->begin();
  if (fetched.ok()) fetched = use_origin(test_place);
  const bool comes_early = fetched.ok() && !fetch->was_whole() && !fetch->train_fingerprint().empty();
  if (comes_early) {
    filling_ = std::thread([this, fetch] {
      name_thread("motley-fetch");
      const Status filled = fill(*fetch);
      if (!filled && filled.error().code != ErrorCode::interrupted) events_.note(filled.error().message);
    });
    return {};
  }
  if (fetched.ok()) fetched = fill(*fetch);
  if (fetched.ok()) return fetched;
  const std::lock_guard lock(fetch_mutex_);
  fetch_.reset();
  if (!fetch->offers_none()) return fetched;
  Status allowed = check_offered(config_, {options_.data_directories, options_.overrides});
  return allowed ? fetched : allowed;
}

Status SharedInputs::use_origin(const std::string& test_place) {
  if (options_.origins.empty() || fetch_->was_whole()) return {};
  const OpenOrigin open = provider_.origin();
  if (!open)
    return Error{ErrorCode::usage, "--origin: this program asks the head alone for the run's data",
                 "pip install . brings one that asks their address, too"};
  const std::vector<std::string> addresses =
      addresses_of(fetch_->set(), config_.data_uri, config_.data_test_uri, test_place);
  if (!addresses.empty()) return fetch_->use_origin(addresses, options_.origins, open);
  events_.note("--origin: the run's data are not from http:// or https:// addresses, and come from the head");
  return {};
}

Status SharedInputs::fill(DataFetch& fetch) {
  if (Status filled = fetch.fill(); !filled) return filled;
  if (!fetch.may_be_shared()) return {};
  if (Status shared = share_->add(fetch.set().offer()); !shared)
    events_.note("not handed on: " + shared.error().message);
  return {};
}

}  // namespace motley::runtime
