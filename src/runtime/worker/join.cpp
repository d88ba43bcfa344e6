#include "runtime/worker/join.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>

#include "engine/link.h"
#include "machine/confinement.h"
#include "machine/keep_awake.h"
#include "runtime/auth.h"
#include "runtime/inputs.h"
#include "runtime/worker/machine_key.h"
#include "runtime/worker/shared_inputs.h"
#include "runtime/worker/token_source.h"
#include "runtime/worker/use_watch.h"
#include "runtime/worker/worker_host.h"
#include "store/secret_file.h"
#include "transport/addresses.h"

namespace motley::runtime {
namespace {

Status check_overrides(const std::vector<std::string>& overrides) {
  for (const std::string& text : overrides) {
    if (!text.starts_with("train.micro_batch=")) {
      return Error{ErrorCode::usage, "--set " + text + ": a worker may only choose train.micro_batch",
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
void confine(const std::vector<Device>& devices) {
  machine::give_up_privileges();
  if (std::ranges::any_of(devices, [](const Device& device) { return device.name != "cpu"; })) return;
  machine::Confinement allowed{.writable = {}, .home = home_directory()};
  if (const std::filesystem::path kept = speeds_file(); !kept.empty()) {
    std::error_code ignored;  // without a place to write to, nothing is kept
    std::filesystem::create_directories(kept.parent_path(), ignored);
    allowed.writable.push_back(kept.parent_path());
  }
  machine::confine_files(allowed);
}

std::shared_ptr<TokenSource> token_source(const JoinOptions& options) {
  return options.token_file.empty() ? nullptr : std::make_shared<TokenSource>(options.token_file, options.token);
}

void tell_other(const std::shared_ptr<TokenSource>& file, const JoinOptions& options, const JoinEvents& events) {
  const std::optional<fleet::JoinToken> other = file ? file->take() : std::nullopt;
  if (!other) return;
  if (events.note) events.note(options.token_file + " has another token now");
  events.other_token(*other);
}

std::string to_words(PauseReason reason) {
  return reason == PauseReason::on_battery ? "paused: on battery" : "paused: somebody is using this machine";
}

WorkerHostEvents events_of(const std::string& name, const std::string& device, const JoinEvents& events) {
  WorkerHostEvents host;
  host.note = events.note;
  host.link = [&events, name, device](LinkChange change, const std::string& why) {
    events.link(name, device, change, why);
  };
  host.step = [&events, name](std::uint64_t version, std::uint64_t samples) { events.step(name, version, samples); };
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
  fetcher.token_source = token_source(options);
  fetcher.prepare = [&files](const wire::RunSpec& spec, const SharedBytes& file) -> Result<PreparedWorker> {
    if (file.empty()) {
      return Error{ErrorCode::mismatch, "this run has no files of a script to give",
                   "motley join TOKEN, with the script where the run is one of a script"};
    }
    if (transport::sha256_hex(file.bytes()) != spec.script_sha256)
      return Error{ErrorCode::protocol, "the files arrived damaged", "join again"};
    files = file;
    return Error{ErrorCode::interrupted, "has the files of the script now", ""};
  };
  Countdown countdown(1);
  WorkerHostEvents host;
  host.note = events.note;
  host.ended = [&countdown](Status status) { countdown.end(std::move(status)); };
  const transport::Identity identity = machine_identity(key_file());
  const std::shared_ptr<TokenSource> source = fetcher.token_source;
  transport::Tcp tcp(tcp_options(options.token, identity));
  Status status;
  {
    WorkerHost worker(std::move(fetcher), std::move(host));
    worker.run_remote(tcp, identity.spki, options.token);
    stop.on_request([&worker] { worker.leave(); });
    status = countdown.wait();
    stop.on_request({});
  }
  if (!status) tell_other(source, options, events);
  if (!status) return status.error();
  if (files.empty()) return Error{ErrorCode::interrupted, "interrupted before the files came", ""};
  return files;
}

Status join(const JoinOptions& options, ModelProvider& provider, const JoinEvents& events, StopSource& stop) {
  if (Status status = check_overrides(options.overrides); !status) return status;
  Result<std::vector<Device>> devices = choose_devices(provider, options.devices);
  if (!devices) return devices.error();
  for (const std::string& doubt : doubts_about(*devices)) events.note(doubt);
  if (devices->empty()) return Error{ErrorCode::usage, "--device none: a worker needs a device", "motley devices"};
  // One key for all: it is this machine that a token lets in. It also ties data connections to their sessions.
  const transport::Identity identity = machine_identity(key_file());
  const std::shared_ptr<TokenSource> source = token_source(options);
  if (provider.is_confined()) confine(*devices);
  if (options.token.plaintext)
    events.note("this token is one without encryption: whoever is on the way sees the run's data, and can change them");
  const std::string machine = options.name.empty() ? transport::machine_name() : options.name;
  std::optional<machine::KeepAwake> awake;  // the use watch's, once there is one
  const auto stay_awake = [&options, &awake](bool works) {
    awake.reset();
    if (works && options.resource_policy.keep_awake) awake.emplace(machine::kWorksHere);
  };
  stay_awake(true);
  SharedInputs inputs(options, provider);
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
    worker.prepare = [&inputs, device](const wire::RunSpec& spec, const SharedBytes& /*files*/) {
      return inputs.prepare(spec, device.name);
    };
    worker.resource_policy = options.resource_policy;
    worker.patience = options.patience;
    worker.token_source = source;
    WorkerHostEvents host = events_of(worker.hello.name, device.name, events);
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
  stop.on_request([&workers, &events] {
    events.note("leaving when the micro-batch in hand is finished; Ctrl-C again leaves at once");
    for (const auto& worker : workers) worker->leave();
  });
  Status status = countdown.wait();
  stop.on_request({});
  watch.reset();
  workers.clear();
  if (!status) tell_other(source, options, events);
  return status;
}

}  // namespace motley::runtime
