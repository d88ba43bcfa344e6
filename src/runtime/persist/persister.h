#pragma once
// Writes what must outlive the process, on a thread of its own: ledger records, the redo log, checkpoints. Never in the
// step path: calls only queue. A full disk is reported at once and tried again with the next record or checkpoint.

#include <chrono>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "runtime/persist/redo_budget.h"
#include "store/checkpoint.h"
#include "store/ledger.h"
#include "store/redo.h"
#include "store/release_files.h"

namespace motley::runtime {

struct PersisterEvents {  // called on the persister's thread
  std::function<void(std::uint64_t step, const std::filesystem::path& path)> checkpoint;
  std::function<void(const Error& error)> error;
};

class Persister {
 public:
  Persister(std::filesystem::path run_dir, store::LedgerWriter ledger, std::shared_ptr<RedoBudget> budget,
            PersisterEvents events);
  ~Persister();  // writes what is queued
  Persister(const Persister&) = delete;
  Persister& operator=(const Persister&) = delete;

  /// `gradients`: what the budget took; else empty.
  void step(store::LedgerStep record, std::vector<SharedBytes> gradients);
  void batch(const BatchChange& change);
  /// A checkpoint of everything submitted so far; starts a new redo log.
  void checkpoint(store::CheckpointContent content);
  /// The run went on that was held at `version`. Kept for one that is resumed: whether that was a `mark`, and what the
  /// loss gets from there on, where that is new.
  void released(std::uint64_t version, bool mark, std::optional<LossState> state);
  /// The redo log pauses, and no checkpoint is on its way: what is done now would be done again.
  [[nodiscard]] bool wants_checkpoint();
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
    std::vector<SharedBytes> gradients{};
    std::optional<store::CheckpointContent> checkpoint{};
    std::optional<BatchChange> batch{};
    std::optional<Released> released{};
    bool sync = false;
  };
  void loop();
  void write(const Job& job);
  void sync();
  void note_redo();
  template <class Record>
  void write_record(const Record& record);
  void write_redo(std::uint64_t version, const std::vector<SharedBytes>& gradients);
  void write_released(const Released& released);
  void write_checkpoint(const store::CheckpointContent& content);
  void report(const Error& error);

  const std::filesystem::path run_dir_;
  PersisterEvents events_;
  const std::shared_ptr<RedoBudget> budget_;

  std::mutex mutex_;
  std::condition_variable arrived_, drained_;
  std::deque<Job> queue_;
  bool busy_ = false;
  bool stopping_ = false;
  bool paused_ = false;  // the newest step is not in the redo log
  std::size_t checkpoints_queued_ = 0;
  std::optional<Error> checkpoint_error_;
  std::filesystem::path newest_;

  // The thread's own.
  store::LedgerWriter ledger_;
  bool ledger_behind_ = false;             // the disk had no room for its last records
  std::optional<store::RedoWriter> redo_;  // empty: not logging until the next checkpoint
  bool unsynced_ = false;                  // something is written that a power cut would take
  std::deque<std::uint64_t> checkpoints_;  // steps of the newest, which a run may be resumed from
  std::set<std::string> reported_;
  std::thread thread_;
};

}  // namespace motley::runtime
