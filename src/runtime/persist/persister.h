#pragma once
// Writes what must outlive the process, on a thread of its own: ledger records and checkpoints. Never in the
// step path: calls only queue. A full disk is reported at once and tried again with the next record or checkpoint.

#include <chrono>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "store/checkpoint.h"
#include "store/ledger.h"
#include "store/release_files.h"

namespace motley::runtime {

struct PersisterEvents {  // called on the persister's thread
  std::function<void(std::uint64_t step, const std::filesystem::path& path)> checkpoint;
  std::function<void(const Error& error)> error;
};

class Persister {
 public:
  Persister(std::filesystem::path run_dir, store::LedgerWriter ledger, PersisterEvents events);
  ~Persister();  // writes what is queued
  Persister(const Persister&) = delete;
  Persister& operator=(const Persister&) = delete;

  void step(store::LedgerStep record);
  void batch(const BatchChange& change);
  /// A checkpoint of everything submitted so far.
  void checkpoint(store::CheckpointContent content);
  /// The run went on that was held at `version`. Kept for one that is resumed: whether that was a `mark`, and what the
  /// loss gets from there on, where that is new.
  void released(std::uint64_t version, bool mark, std::optional<LossState> state);
  /// How long it took to write the last checkpoint, or to fail; empty: it is on its way.
  [[nodiscard]] std::optional<double> checkpoint_seconds();
  /// Waits until all that was submitted is written and synced, or has failed. The newest checkpoint's directory, or the
  /// error of the last attempt.
  Result<std::filesystem::path> drain();

 private:
  struct Released {
    std::uint64_t version = 0;
    bool mark = false;
    std::optional<LossState> state{};
  };
  struct Job {
    std::optional<store::LedgerStep> record{};
    std::optional<store::CheckpointContent> checkpoint{};
    std::optional<BatchChange> batch{};
    std::optional<Released> released{};
    bool sync = false;
  };
  void loop();
  void write(const Job& job);
  void sync();
  template <class Record>
  void write_record(const Record& record);
  void write_released(const Released& released);
  void write_checkpoint(const store::CheckpointContent& content);
  void report(const Error& error);

  const std::filesystem::path run_dir_;
  PersisterEvents events_;

  std::mutex mutex_;
  std::condition_variable arrived_, drained_;
  std::deque<Job> queue_;
  bool busy_ = false;
  bool stopping_ = false;
  std::size_t checkpoints_queued_ = 0;
  double checkpoint_seconds_ = 0;
  std::optional<Error> checkpoint_error_;
  std::filesystem::path newest_;

  // The thread's own.
  store::LedgerWriter ledger_;
  bool unsynced_ = false;                  // something is written that a power cut would take
  std::deque<std::uint64_t> checkpoints_;  // steps of the newest, which a run may be resumed from
  std::set<std::string> reported_;
  std::thread thread_;
};

}  // namespace motley::runtime
