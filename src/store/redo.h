#pragma once
// Redo log: the final fp32 gradient of every step since the last checkpoint, so that a killed coordinator loses at most
// the open step. One file per checkpoint: DIR/redo/from-NNNNNNNNN.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "motley/bytes.h"
#include "motley/result.h"

namespace motley::store {

class RedoWriter {
 public:
  /// A new log of the steps from `version` on; truncates one that exists.
  static Result<RedoWriter> create(const std::filesystem::path& run_dir, std::uint64_t version);
  /// The gradients of step `version`, by chunk. Errors: disk_full, io.
  Status append(std::uint64_t version, std::span<const SharedBytes> gradients);
  Status sync();
  RedoWriter(RedoWriter&&) noexcept;
  RedoWriter& operator=(RedoWriter&&) noexcept;
  RedoWriter(const RedoWriter&) = delete;
  RedoWriter& operator=(const RedoWriter&) = delete;
  ~RedoWriter();

 private:
  struct Impl;
  explicit RedoWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Calls `apply(version, gradients)` for each intact record from `version` on, across all logs, stopping at the first
/// gap, torn or damaged record. Returns the version reached.
Result<std::uint64_t> replay_redo(const std::filesystem::path& run_dir, std::uint64_t version,
                                  const std::function<Status(std::uint64_t, std::span<const SharedBytes>)>& apply);
/// Deletes logs that hold only steps before `version`.
Status prune_redo(const std::filesystem::path& run_dir, std::uint64_t version);

}  // namespace motley::store
