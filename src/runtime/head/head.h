#pragma once
// A run's coordinator with its files, its door and the workers of this machine. Private to train() and plan().

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <vector>

#include "runtime/head/coordinator_host.h"
#include "runtime/head/run.h"
#include "runtime/worker/worker_host.h"

namespace motley::runtime {

class Head {
 public:
  /// REQUIRES all three outlive this.
  Head(const TrainOptions& options, ModelProvider& provider, report::Sink& sink);
  ~Head();
  Head(const Head&) = delete;
  Head& operator=(const Head&) = delete;
  /// Opens data, model, files and the door where workers join.
  Status open();
  /// `resumable`: workers of a run that is stopped are told to come back. `on_end` is called when wait() would return.
  /// REQUIRES open() succeeded.
  void start(bool resumable, std::function<void()> on_end = {});
  [[nodiscard]] CoordinatorHost& host() { return *host_; }
  /// CoordinatorHost::stop(). Any thread.
  void stop(bool final = false);
  [[nodiscard]] const Run& run() const { return run_; }
  /// Until the run is over. The error that ended it was not told to the sink. Once.
  Status wait();

 private:
  /// What a run that goes on had told, or has yet to tell, of the eval point where it does so.
  void report_owed_eval_point();

  Run run_;
  std::atomic<bool> over_ = false;  // when it is stopped
  std::promise<Status> ended_;
  // The workers go first, then the host, which the reception does not call by then.
  std::unique_ptr<CoordinatorHost> host_;
  std::vector<std::unique_ptr<WorkerHost>> workers_;
};

}  // namespace motley::runtime
