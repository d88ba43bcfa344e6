#pragma once
// What a run is about, loaded once for all workers of a process that joined it. Thread-safe.

#include <memory>
#include <mutex>
#include <string>

#include "runtime/model_provider.h"
#include "runtime/worker/join.h"
#include "runtime/worker/worker_host.h"

namespace motley::runtime {

class SharedInputs {
 public:
  /// All outlive this.
  SharedInputs(const JoinOptions& options, ModelProvider& provider) : options_(options), provider_(provider) {}
  SharedInputs(const SharedInputs&) = delete;
  SharedInputs& operator=(const SharedInputs&) = delete;

  Result<PreparedWorker> prepare(const wire::RunSpec& spec, const std::string& device);

 private:
  Status load(const wire::RunSpec& spec);

  const JoinOptions& options_;
  ModelProvider& provider_;
  std::mutex mutex_;
  bool loaded_ = false;
  wire::RunSpec spec_;
  config::RunConfig config_;
  ModelInputs inputs_;
};

}  // namespace motley::runtime
