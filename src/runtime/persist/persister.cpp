#include "runtime/persist/persister.h"

#include <algorithm>
#include <chrono>

#include "base/thread_name.h"
#include "runtime/mailbox.h"

namespace motley::runtime {
namespace {

constexpr std::chrono::seconds kSyncEvery{1};
constexpr std::size_t kCheckpointsKept = 3;

}  // namespace

Persister::Persister(std::filesystem::path run_dir, store::LedgerWriter ledger, PersisterEvents events)
    : run_dir_(std::move(run_dir)),
      events_(std::move(events)),
      ledger_(std::move(ledger)),
      thread_([this] { loop(); }) {}

Persister::~Persister() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  arrived_.notify_one();
  thread_.join();
}

void Persister::step(store::LedgerStep record) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back({.record = std::move(record)});
  }
  arrived_.notify_one();
}

void Persister::batch(const BatchChange& change) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back({.batch = change});
  }
  arrived_.notify_one();
}

void Persister::released(std::uint64_t version, bool mark, std::optional<LossState> state) {
  if (!mark && !state) return;
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back({.released = Released{version, mark, std::move(state)}});
  }
  arrived_.notify_one();
}

void Persister::checkpoint(store::CheckpointContent content) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back({.checkpoint = std::move(content)});
    ++checkpoints_queued_;
  }
  arrived_.notify_one();
}

std::optional<double> Persister::checkpoint_seconds() {
  const std::lock_guard lock(mutex_);
  return checkpoints_queued_ > 0 ? std::nullopt : std::optional(checkpoint_seconds_);
}

Result<std::filesystem::path> Persister::drain() {
  std::unique_lock lock(mutex_);
  queue_.push_back({.sync = true});
  arrived_.notify_one();
  drained_.wait(lock, [this] { return queue_.empty() && !busy_; });
  if (checkpoint_error_) return *checkpoint_error_;
  return newest_;
}

void Persister::loop() {
  name_thread("motley-log");
  auto sync_at = std::chrono::steady_clock::now() + kSyncEvery;
  const auto woken = [this] { return stopping_ || !queue_.empty(); };
  for (;;) {
    std::deque<Job> jobs;
    {
      std::unique_lock lock(mutex_);
      busy_ = false;
      if (queue_.empty()) drained_.notify_all();
      if (!unsynced_) {
        arrived_.wait(lock, woken);
      } else {
        arrived_.wait_until(lock, sync_at, woken);
      }
      if (stopping_ && queue_.empty()) break;
      jobs.swap(queue_);
      busy_ = true;
    }
    for (const Job& job : jobs) write(job);
    if (std::chrono::steady_clock::now() >= sync_at) {
      sync();
      sync_at = std::chrono::steady_clock::now() + kSyncEvery;
    }
  }
  sync();
}

void Persister::write(const Job& job) {
  if (job.record) {
    write_record(*job.record);
    unsynced_ = true;
  }
  if (job.batch) {
    write_record(*job.batch);
    unsynced_ = true;
  }
  if (job.released) write_released(*job.released);
  if (job.checkpoint) {
    const Time began = now();
    write_checkpoint(*job.checkpoint);
    const std::lock_guard lock(mutex_);
    --checkpoints_queued_;
    checkpoint_seconds_ = seconds(now() - began);
  }
  if (job.sync) sync();
}

void Persister::sync() {
  if (!unsynced_) return;
  unsynced_ = false;
  if (const Status status = ledger_.sync(); !status) report(status.error());
}

// A record that finds no room is kept by the ledger and written with the next one.
template <class Record>
void Persister::write_record(const Record& record) {
  if (const Status status = ledger_.append(record); !status) report(status.error());
}

// The state before the mark: who finds the mark need not be asked again.
void Persister::write_released(const Released& released) {
  Status status;
  if (released.state) status = store::write_state(run_dir_, released.version, *released.state);
  if (status && released.mark) status = store::write_released(run_dir_, released.version);
  if (!status) report(status.error());
}

void Persister::write_checkpoint(const store::CheckpointContent& content) {
  if (const Status status = ledger_.sync(); !status) report(status.error());
  Result<std::filesystem::path> path = store::write_checkpoint(run_dir_, content, kCheckpointsKept);
  if (!path) {
    report(path.error());
    const std::lock_guard lock(mutex_);
    checkpoint_error_ = path.error();
    return;
  }
  reported_.clear();
  checkpoints_.push_back(content.step);
  if (checkpoints_.size() > kCheckpointsKept) checkpoints_.pop_front();
  store::prune_states(run_dir_, checkpoints_.front());
  {
    const std::lock_guard lock(mutex_);
    checkpoint_error_.reset();
    newest_ = *path;
  }
  events_.checkpoint(content.step, *path);
}

void Persister::report(const Error& error) {
  // A full disk refuses every step; its error is worth saying once until a checkpoint succeeds. Behind the semicolon
  // are sizes, which differ from step to step.
  if (reported_.insert(error.message.substr(0, error.message.find(';'))).second) events_.error(error);
}

}  // namespace motley::runtime
