#include "runtime/persist/persister.h"

#include <algorithm>
#include <chrono>

#include "base/thread_name.h"

namespace motley::runtime {
namespace {

constexpr std::chrono::seconds kSyncEvery{1};
constexpr std::size_t kCheckpointsKept = 3;

std::size_t bytes_of(const std::vector<SharedBytes>& chunks) {
  std::size_t total = 0;
  for (const SharedBytes& chunk : chunks) total += chunk.size();
  return total;
}

}  // namespace

Persister::Persister(std::filesystem::path run_dir, store::LedgerWriter ledger, std::shared_ptr<RedoBudget> budget,
                     PersisterEvents events)
    : run_dir_(std::move(run_dir)),
      events_(std::move(events)),
      budget_(std::move(budget)),
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

void Persister::step(store::LedgerStep record, std::vector<SharedBytes> gradients) {
  budget_->queued(bytes_of(gradients));
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back({.record = std::move(record), .gradients = std::move(gradients)});
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
    budget_->begin();
  }
  arrived_.notify_one();
}

bool Persister::wants_checkpoint() {
  const std::lock_guard lock(mutex_);
  return paused_ && checkpoints_queued_ == 0;
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
    write_redo(job.record->step, job.gradients);
    unsynced_ = true;
    budget_->written(bytes_of(job.gradients));
    note_redo();
  }
  if (job.batch) {
    write_record(*job.batch);
    unsynced_ = true;
  }
  if (job.released) write_released(*job.released);
  if (job.checkpoint) {
    write_checkpoint(*job.checkpoint);
    {
      const std::lock_guard lock(mutex_);
      --checkpoints_queued_;
    }
    note_redo();
  }
  if (job.sync) sync();
}

// Behind the next checkpoint another log begins.
void Persister::note_redo() {
  const std::lock_guard lock(mutex_);
  paused_ = !redo_;
  if (paused_ && checkpoints_queued_ == 0) budget_->pause();
}

void Persister::sync() {
  if (!unsynced_) return;
  unsynced_ = false;
  if (const Status status = ledger_.sync(); !status) report(status.error());
  if (!redo_) return;
  if (const Status status = redo_->sync(); !status) {
    report(status.error());
    redo_.reset();
  }
}

// A record that finds no room is kept by the ledger and written with the next one.
template <class Record>
void Persister::write_record(const Record& record) {
  const Status status = ledger_.append(record);
  ledger_behind_ = !status;
  if (!status) report(status.error());
}

// The log must have no gap: after a record that is missing, later ones are useless, so it pauses.
void Persister::write_redo(std::uint64_t version, const std::vector<SharedBytes>& gradients) {
  if (!redo_) return;
  if (gradients.empty() || ledger_behind_) {
    redo_.reset();
    return;
  }
  if (const Status status = redo_->append(version, gradients); !status) {
    report(status.error());
    redo_.reset();
  }
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
  Result<store::RedoWriter> redo = store::RedoWriter::create(run_dir_, content.step);
  if (redo) {
    redo_.emplace(std::move(*redo));
    (void)store::prune_redo(run_dir_, content.step);
  } else {
    redo_.reset();
    report(redo.error());
  }
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
