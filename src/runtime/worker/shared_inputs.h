#pragma once
// The data sets and the model of a run, loaded once for all workers of a process that joined it. What the head's
// configuration names of files, and this machine's user does not offer, comes from the head. Thread-safe.

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "runtime/model_provider.h"
#include "runtime/worker/data_fetch.h"
#include "runtime/worker/join.h"
#include "runtime/worker/stock_watch.h"
#include "runtime/worker/worker_host.h"

namespace motley::runtime {

class SharedInputs {
 public:
  /// All but `share` outlive this.
  SharedInputs(const JoinOptions& options, ModelProvider& provider, const JoinEvents& events,
               std::shared_ptr<DataShare> share);
  ~SharedInputs();
  SharedInputs(const SharedInputs&) = delete;
  SharedInputs& operator=(const SharedInputs&) = delete;

  Result<PreparedWorker> prepare(const wire::RunSpec& spec, const SharedBytes& model_file, const std::string& device);
  /// What is fetched comes to an end.
  void stop();
  /// Which samples are here: for all workers.
  [[nodiscard]] const std::shared_ptr<SampleStock>& stock() const noexcept { return stock_; }

 private:
  Status load(const wire::RunSpec& spec, const SharedBytes& model_file);
  /// config_ with paths of this machine.
  Status bring_data();
  Status fetch_data(const std::string& test_place);
  /// Where the user named origins, and these files are from an address.
  Status use_origin(const std::string& test_place);
  /// The rest of what is fetched.
  Status fill(DataFetch& fetch);
  [[nodiscard]] ComingData coming() const;
  void watch_stock();

  const JoinOptions& options_;
  ModelProvider& provider_;
  const JoinEvents& events_;
  const std::shared_ptr<DataShare> share_;
  const std::shared_ptr<SampleStock> stock_;
  std::mutex mutex_;
  bool loaded_ = false;
  wire::RunSpec spec_;
  config::RunConfig config_;
  ModelInputs inputs_;
  std::optional<StockWatch> watch_;
  std::mutex fetch_mutex_;
  std::shared_ptr<DataFetch> fetch_;  // of the head's data
  bool stops_ = false;
  std::thread filling_;
};

}  // namespace motley::runtime
