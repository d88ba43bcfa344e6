#pragma once
// The data sets and the model of a run, loaded once for all workers of a process that joined it. What the head's
// configuration names of files, and this machine's user does not offer, comes from the head. Thread-safe.

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "runtime/model_provider.h"
#include "runtime/worker/data_fetch.h"
#include "runtime/worker/join.h"
#include "runtime/worker/worker_host.h"

namespace motley::runtime {

class SharedInputs {
 public:
  /// All outlive this.
  SharedInputs(const JoinOptions& options, ModelProvider& provider, const JoinEvents& events)
      : options_(options), provider_(provider), events_(events) {}
  SharedInputs(const SharedInputs&) = delete;
  SharedInputs& operator=(const SharedInputs&) = delete;

  Result<PreparedWorker> prepare(const wire::RunSpec& spec, const SharedBytes& model_file, const std::string& device);
  /// What is fetched comes to an end.
  void stop();

 private:
  Status load(const wire::RunSpec& spec, const SharedBytes& model_file);
  /// config_ with paths of this machine.
  Status bring_data();
  Status fetch_data();

  const JoinOptions& options_;
  ModelProvider& provider_;
  const JoinEvents& events_;
  std::mutex mutex_;
  bool loaded_ = false;
  wire::RunSpec spec_;
  config::RunConfig config_;
  ModelInputs inputs_;
  std::optional<KeptSet> kept_;  // the head's data
  std::mutex fetch_mutex_;
  DataFetch* fetch_ = nullptr;  // that is under way
  bool stops_ = false;
};

}  // namespace motley::runtime
