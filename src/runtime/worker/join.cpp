#include "runtime/worker/join.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>

#include "data/uri.h"
#include "machine/confinement.h"
#include "machine/keep_awake.h"
#include "runtime/auth.h"
#include "runtime/inputs.h"
#include "runtime/wire_cost.h"
#include "runtime/worker/data_fetch.h"
#include "runtime/worker/machine_key.h"
#include "runtime/worker/offered_data.h"
#include "runtime/worker/use_watch.h"
#include "runtime/worker/worker_host.h"
#include "store/secret_file.h"
#include "transport/addresses.h"

namespace motley::runtime {
namespace {

// The data sets and the model of a run, loaded once for all workers of this process.
class SharedInputs {
 public:
  SharedInputs(const JoinOptions& options, ModelProvider& provider, const JoinEvents& events,
               std::shared_ptr<DataShare> share)
      : options_(options), provider_(provider), events_(events), share_(std::move(share)) {}

  /// What prepare() fetches comes to an end.
  void stop() {
    const std::lock_guard lock(fetch_mutex_);
    stops_ = true;
    if (fetch_) fetch_->stop();
  }

  Result<PreparedWorker> prepare(const wire::RunSpec& spec, const SharedBytes& model_file, const std::string& device) {
    const std::lock_guard lock(mutex_);
    if (!loaded_ || spec_ != spec) {
      if (Status status = load(spec, model_file); !status) return status.error();
    }
    Result<PreparedWorker> worker = prepare_worker(provider_, inputs_, device, options_.threads, kCopiesOfWorker);
    if (worker && config::leaves_codec_open(config_))
      worker->wire_cost = measure_end_cost(!options_.token.plaintext, device, options_.threads);
    return worker;
  }

 private:
  Status load(const wire::RunSpec& spec, const SharedBytes& model_file) {
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
    if (options_.stock) options_.stock->begin(config_.seed, config_.shuffle);
    inputs_.file = model_file;
    spec_ = spec;
    loaded_ = true;
    return {};
  }

  // What the head's configuration names of files, and this machine's user does not offer, comes from the head.
  Status bring_data() {
    const OfferedData offered{options_.data_directories, options_.overrides};
    Status allowed = check_offered(config_, offered);
    const bool script = config_.model_kind == config::kScriptKind;
    const bool train = script || is_own("data.uri", config_.data_uri, offered);
    const bool test = script || is_own("data.test_uri", config_.data_test_uri, offered);
    if (train && test) return allowed;
    if (!set_) {
      Result<KeptSet> set = fetch_data();
      if (!set) return set.error();
      set_.emplace(std::move(*set));
    }
    const bool same =
        config_.data_test_uri == config_.data_uri || data::same_text(config_.data_uri, config_.data_test_uri);
    Result<std::string> test_here =
        test ? config_.data_test_uri : uri_here(*set_, config_.data_test_uri, same ? "train" : "test");
    if (!test_here) return test_here.error();
    Result<std::string> train_here = train ? config_.data_uri : uri_here(*set_, config_.data_uri, "train");
    if (!train_here) return train_here.error();
    config_.data_uri = std::move(*train_here);
    config_.data_test_uri = std::move(*test_here);
    return {};
  }

  Result<KeptSet> fetch_data() {
    const std::filesystem::path home = home_directory();
    if (home.empty())
      return Error{ErrorCode::io, "the head's data are kept below this user's home, and there is none",
                   "HOME=DIR motley join"};
    const auto progress = [this](std::uint64_t done, std::uint64_t total) {
      if (events_.download) events_.download("the head's data", done, total);
    };
    auto fetch =
        std::make_shared<DataFetch>(options_.token, options_.name.empty() ? transport::machine_name() : options_.name,
                                    machine_identity(key_file()), home / ".cache/motley/data", progress);
    {
      const std::lock_guard lock(fetch_mutex_);
      fetch_ = fetch;
      if (stops_) fetch->stop();
    }
    Result<KeptSet> set = fetch->run();
    if (set && fetch->may_be_shared())
      if (Status shared = share_->add(set->offer()); !shared) events_.note("not handed on: " + shared.error().message);
    if (!set && fetch->offers_none())
      if (Status allowed = check_offered(config_, {options_.data_directories, options_.overrides}); !allowed)
        return allowed.error();
    const std::lock_guard lock(fetch_mutex_);
    fetch_.reset();
    return set;
  }

  const JoinOptions& options_;
  ModelProvider& provider_;
  const JoinEvents& events_;
  std::mutex mutex_;
  bool loaded_ = false;
  wire::RunSpec spec_;
  config::RunConfig config_;
  ModelInputs inputs_;
  std::optional<KeptSet> set_;  // of the head's data
  std::mutex fetch_mutex_;
  std::shared_ptr<DataFetch> fetch_;
  const std::shared_ptr<DataShare> share_;
  bool stops_ = false;
};

Status check_overrides(const std::vector<std::string>& overrides) {
  for (const std::string& text : overrides) {
    if (text.rfind("data.", 0) != 0 && text.rfind("train.micro_batch=", 0) != 0) {
      return Error{ErrorCode::usage, "--set " + text + ": a worker may only choose data.* and train.micro_batch",
                   "everything else is decided on the head"};
    }
  }
  return {};
}

// Counts the workers that have ended; the first error is the one that is told.
class Countdown {
 public:
  explicit Countdown(std::size_t count) : left_(count) {}
  void end(Status status) {
    const std::lock_guard lock(mutex_);
    if (!status && first_) first_ = std::move(status);
    --left_;
    ended_.notify_all();
  }
  Status wait() {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return left_ == 0; });
    return first_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  std::size_t left_;
  Status first_;
};

// For as long as this process lives. Drivers of accelerators write to places that nobody lists, so where one is used
// files are not confined.
void confine(const JoinOptions& options, const std::vector<Device>& devices,
             const std::vector<std::filesystem::path>& readable) {
  machine::give_up_privileges();
  if (std::ranges::any_of(devices, [](const Device& device) { return device.name != "cpu"; })) return;
  machine::Confinement allowed{.writable = {}, .readable = readable, .home = home_directory()};
  for (const std::string& directory : options.data_directories) allowed.readable.emplace_back(directory);
  for (const std::string& text : options.overrides) {
    for (const std::string& path : data::paths_of(text.substr(std::min(text.find('=') + 1, text.size()))))
      allowed.readable.emplace_back(path);
  }
  if (const std::filesystem::path kept = speeds_file(); !kept.empty()) {
    std::error_code ignored;  // without a place to write to, nothing is kept
    std::filesystem::create_directories(kept.parent_path(), ignored);
    allowed.writable.push_back(kept.parent_path());
  }
  machine::confine_files(allowed);
}

std::string to_words(PauseReason reason) {
  return reason == PauseReason::on_battery ? "paused: on battery" : "paused: somebody is using this machine";
}

WorkerHostEvents events_of(const std::string& name, const std::string& device, const JoinEvents& events,
                           const std::shared_ptr<DataShare>& share) {
  WorkerHostEvents host;
  host.note = events.note;
  host.link = [&events, name, device](LinkChange change, const std::string& why) {
    events.link(name, device, change, why);
  };
  host.step = [&events, name, share](std::uint64_t version, std::uint64_t samples) {
    share->step(version);
    events.step(name, version, samples);
  };
  return host;
}

}  // namespace

Result<fleet::JoinToken> wait_for_token_file(const std::string& file, StopSource& stop,
                                             const std::function<void(const std::string&)>& note) {
  bool said = false;
  while (!stop.requested()) {
    std::error_code ignored;
    if (std::filesystem::exists(file, ignored)) {
      Result<std::string> text = store::read_secret_file(file, fleet::JoinToken::kTextBytesMax);
      if (!text) return text.error();
      if (!text->empty()) return fleet::parse_token(*text);
    }
    if (!said) note("waiting for " + file);
    said = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return Error{ErrorCode::interrupted, "interrupted while waiting for " + file, ""};
}

Result<SharedBytes> fetch_script(const JoinOptions& options, const JoinEvents& events, StopSource& stop) {
  SharedBytes files;
  WorkerHostOptions fetcher;
  Device none;
  none.name = "fetch";
  fetcher.hello = hello_for(none, options.name.empty() ? transport::machine_name() : options.name, 0);
  fetcher.hello.features = {engine::kFetch};
  fetcher.patience = options.patience;
  fetcher.prepare = [&files](const wire::RunSpec& spec, const SharedBytes& file) -> Result<PreparedWorker> {
    if (file.empty()) {
      return Error{ErrorCode::mismatch, "this run has no files of a script to give",
                   "motley join TOKEN, with the script where the run is one of a script"};
    }
    if (transport::sha256_hex(file.bytes()) != spec.model_sha256)
      return Error{ErrorCode::protocol, "the files arrived damaged", "join again"};
    files = file;
    return Error{ErrorCode::interrupted, "has the files of the script now", ""};
  };
  Countdown countdown(1);
  WorkerHostEvents host;
  host.note = events.note;
  host.ended = [&countdown](Status status) { countdown.end(std::move(status)); };
  const transport::Identity identity = machine_identity(key_file());
  transport::Tcp tcp(tcp_options(options.token, identity));
  Status status;
  {
    WorkerHost worker(std::move(fetcher), std::move(host));
    worker.run_remote(tcp, identity.spki, options.token);
    stop.on_request([&worker] { worker.leave(); });
    status = countdown.wait();
    stop.on_request({});
  }
  if (!status) return status.error();
  if (files.empty()) return Error{ErrorCode::interrupted, "interrupted before the files came", ""};
  return files;
}

Status join(const JoinOptions& options, ModelProvider& provider, const JoinEvents& events, StopSource& stop) {
  if (Status status = check_overrides(options.overrides); !status) return status;
  Result<std::vector<Device>> devices = choose_devices(provider, options.devices);
  if (!devices) return devices.error();
  if (devices->empty()) return Error{ErrorCode::usage, "--device none: a worker needs a device", "motley devices"};
  // One key for all: it is this machine that a token lets in. It also ties data connections to their sessions.
  const transport::Identity identity = machine_identity(key_file());
  if (const auto readable = provider.confined_to()) confine(options, *devices, *readable);
  if (options.token.plaintext)
    events.note("this token is one without encryption: whoever is on the way sees the run's data, and can change them");
  const std::string machine = options.name.empty() ? transport::machine_name() : options.name;
  std::optional<machine::KeepAwake> awake;  // the use watch's, once there is one
  const auto stay_awake = [&options, &awake](bool works) {
    awake.reset();
    if (works && options.manners.keep_awake) awake.emplace(machine::kWorksHere);
  };
  stay_awake(true);
  const std::shared_ptr<DataShare> share =
      options.share ? options.share : std::make_shared<DataShare>(options.token, machine, identity);
  SharedInputs inputs(options, provider, events, share);
  Countdown countdown(devices->size());

  std::vector<std::unique_ptr<transport::Tcp>> tcps;
  std::vector<std::unique_ptr<WorkerHost>> workers;
  for (std::size_t i = 0; i < devices->size(); ++i) {
    const Device& device = (*devices)[i];
    WorkerHostOptions worker;
    std::size_t number = 0;
    for (std::size_t j = 0; j < i; ++j) number += (*devices)[j].name == device.name ? 1 : 0;
    worker.hello = hello_for(device, machine, number);
    worker.speeds = speeds_file();
    worker.prepare = [&inputs, device](const wire::RunSpec& spec, const SharedBytes& file) {
      return inputs.prepare(spec, file, device.name);
    };
    worker.manners = options.manners;
    worker.patience = options.patience;
    worker.stock = options.stock;
    worker.identity = identity;
    WorkerHostEvents host = events_of(worker.hello.name, device.name, events, share);
    host.ended = [&countdown](Status status) { countdown.end(std::move(status)); };
    tcps.push_back(std::make_unique<transport::Tcp>(tcp_options(options.token, identity)));
    workers.push_back(std::make_unique<WorkerHost>(std::move(worker), std::move(host)));
  }
  const auto use_changed = [&workers, &events, &stay_awake](PauseReason reason) {
    const bool paused = reason != PauseReason::none;
    stay_awake(!paused);
    events.note(paused ? to_words(reason) : "resumed");
    for (const auto& worker : workers) paused ? worker->pause(to_words(reason)) : worker->resume();
  };
  std::optional<UseWatch> watch;
  if (options.yield.wanted()) watch.emplace(options.yield, machine::make_machine_use(), use_changed);
  for (std::size_t i = 0; i < workers.size(); ++i) workers[i]->run_remote(*tcps[i], identity.spki, options.token);
  stop.on_request([&workers, &events, &inputs] {
    events.note("leaving when the micro-batch in hand is finished; Ctrl-C again leaves at once");
    inputs.stop();
    for (const auto& worker : workers) worker->leave();
  });
  Status status = countdown.wait();
  stop.on_request({});
  watch.reset();
  inputs.stop();
  workers.clear();
  return status;
}

}  // namespace motley::runtime
