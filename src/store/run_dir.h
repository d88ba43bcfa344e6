#pragma once
// The run directory: lock, configuration, key, incarnation counter. One process at a time.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "motley/result.h"

namespace motley::store {

class RunDir {
 public:
  /// Creates (or, with `must_exist`, opens) it and takes its lock. Errors: busy (names the process that holds it), io,
  /// disk_full, input (resume of something that is no run).
  static Result<RunDir> open(const std::filesystem::path& path, bool must_exist);
  [[nodiscard]] const std::filesystem::path& path() const noexcept;
  /// True if a run was started here before (run.toml is there).
  [[nodiscard]] bool has_run() const;
  /// Small files, written atomically: temporary, fsync, rename, fsync of the directory. `secret`: mode 0600.
  Status write_file(const std::string& name, std::string_view content, bool secret = false);
  Result<std::string> read_file(const std::string& name, std::size_t bytes_max) const;
  /// Raises the incarnation by one and makes it durable before it returns.
  Result<std::uint32_t> next_incarnation();

  RunDir(RunDir&&) noexcept;
  RunDir& operator=(RunDir&&) noexcept;
  RunDir(const RunDir&) = delete;
  RunDir& operator=(const RunDir&) = delete;
  ~RunDir();

 private:
  struct Impl;
  explicit RunDir(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace motley::store
