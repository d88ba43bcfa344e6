#pragma once
// The ledger: an append-only file of committed ranges per step with checksums. `motley audit` reads it alone.
// docs/formats/ledger.md is the specification.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/batch_plan.h"
#include "motley/result.h"

namespace motley::store {

struct LedgerHeader {
  std::uint64_t run = 0;
  std::uint64_t seed = 0;
  std::uint64_t samples = 0;       // N of the training set
  std::uint64_t global_batch = 0;  // B, of the first step
  std::string train_fingerprint;
  bool drop_last = false;  // an epoch has whole batches alone
  bool in_order = false;   // not shuffled
  bool operator==(const LedgerHeader&) const = default;
};

struct LedgerRange {
  std::uint64_t first = 0, count = 0;  // positions of the pass
  std::string worker;
  bool operator==(const LedgerRange&) const = default;
};

/// Positions of an earlier step that counted in a later one.
struct LedgerLate {
  std::uint64_t step = 0;  // whose positions they are
  std::uint64_t at = 0;    // in which they counted
  std::vector<LedgerRange> ranges;
  bool operator==(const LedgerLate&) const = default;
};

struct LedgerStep {
  std::uint64_t step = 0;  // the version the gradients were computed at
  std::uint64_t incarnation = 0;
  double weight = 0, loss_sum = 0;
  std::vector<LedgerRange> ranges;        // in order of positions
  std::optional<double> gradient_norm{};  // before clipping, in runs that clip
  std::vector<LedgerLate> late{};         // what else counted in it
  bool operator==(const LedgerStep&) const = default;
};

struct LedgerRollback {
  std::uint64_t to_version = 0;
  std::uint64_t incarnation = 0;
  bool operator==(const LedgerRollback&) const = default;
};

/// Appends. Not thread-safe: one owner. append() buffers in the kernel; sync() makes it durable.
class LedgerWriter {
 public:
  /// Creates or opens for appending; a torn last record is cut off. ErrorCode::mismatch if the header differs.
  static Result<LedgerWriter> open(const std::filesystem::path& file, const LedgerHeader& header);
  Status append(const LedgerStep& step);
  Status append(const LedgerRollback& rollback);
  Status append(const BatchChange& change);
  Status sync();
  LedgerWriter(LedgerWriter&&) noexcept;
  LedgerWriter& operator=(LedgerWriter&&) noexcept;
  LedgerWriter(const LedgerWriter&) = delete;
  LedgerWriter& operator=(const LedgerWriter&) = delete;
  ~LedgerWriter();

 private:
  struct Impl;
  explicit LedgerWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct Ledger {
  LedgerHeader header;
  std::vector<LedgerStep> steps;  // effective history: rollbacks applied; in order of steps
  std::uint64_t rollbacks = 0;
  bool torn = false;                         // the last record was incomplete
  std::vector<BatchChange> batch_changes{};  // effective, in order of steps
};
Result<Ledger> read_ledger(const std::filesystem::path& file);

struct Audit {
  std::uint64_t epochs = 0;     // begun
  std::uint64_t samples = 0;    // committed
  std::uint64_t missing = 0;    // positions of committed steps that no range covers, and steps skipped
  std::uint64_t duplicate = 0;  // positions covered twice
  std::uint64_t owed = 0;       // positions of committed steps that later ones are to make
  std::vector<std::string> findings;
};
/// `makes_up`: the run is in rounds and has not ended. What no range covers counts in a later round then: it is owed,
/// not missing.
Audit audit(const Ledger& ledger, bool makes_up = false);

/// Positions of the steps before `version` that did not count yet.
std::vector<Owed> owed(const Ledger& ledger, std::uint64_t version);

/// The sample numbers of `epoch`, in the order they were used (committed steps only).
std::vector<std::uint64_t> order_of(const Ledger& ledger, std::uint64_t epoch);

}  // namespace motley::store
