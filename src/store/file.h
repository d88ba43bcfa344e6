#pragma once
// Files as the store needs them: whole reads and writes, durable, with errors that name the file. Internal to store/.
// A File belongs to one thread at a time.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "motley/bytes.h"
#include "motley/result.h"

namespace motley::store {

/// What the operating system refused, as an Error: disk_full for a full disk, a quota or a file-size limit, else io.
/// `what` completes "cannot …"; `bytes_needed` is named when the disk is full (0: unknown).
Error system_error(std::string_view what, const std::filesystem::path& path, int code, std::uint64_t bytes_needed = 0);

/// `text` in double quotes, control bytes escaped, cut at 100 bytes: for names that come from a file.
std::string in_quotes(std::string_view text);

class File {
 public:
  enum class Mode : std::uint8_t { read, append, create, create_secret, append_secret };

  static constexpr std::size_t kDirectBytes = 4096;  // the largest block of a disk or file system that is in use
  static constexpr std::size_t kDirectWorthBytes = std::size_t{4} << 20;  // what is less, the system writes together

  File() = default;
  /// create empties a file that exists, and create_secret refuses one; append creates one that does not, append_secret
  /// follows no link to it. All but the ones that append begin to write at the file's beginning. What is secret is made
  /// for its owner alone (mode 0600).
  static Result<File> open(const std::filesystem::path& path, Mode mode);
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File();

  [[nodiscard]] bool is_open() const noexcept { return descriptor_ >= 0; }
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  Result<std::uint64_t> size() const;
  /// Writes all of it where the file's position is.
  Status write(std::span<const std::byte> bytes);
  /// The same from many pieces, without copying them together.
  Status write(std::span<const SharedBytes> parts);
  /// What is written from now on goes from its memory to the disk, where the file system can: of many bytes that are
  /// read after a crash only, that costs a tenth of the processor's time. REQUIRES of all later writes that the
  /// file's position, and the address and size of each piece, are multiples of kDirectBytes.
  void write_past_cache() noexcept;
  void write_by_cache() noexcept;
  /// Reads exactly out.size() bytes. ErrorCode::input if the file ends before.
  Status read_at(std::uint64_t offset, std::span<std::byte> out) const;
  Status truncate(std::uint64_t size);
  /// For this process alone, until the file is closed or the process ends. False: another one has it. What is in the
  /// file can be read all the same.
  Result<bool> try_lock();
  /// Durable when it returns: also past the disk's own cache where the system can (F_FULLFSYNC).
  Status sync();
  void close() noexcept;

 private:
  int descriptor_ = -1;
  std::filesystem::path path_;
};

/// The number of this process, for people and for names.
[[nodiscard]] long this_process() noexcept;
/// Makes renames, creations and deletions in a directory durable.
Status sync_directory(const std::filesystem::path& directory);
/// mkdir -p, durable.
Status make_directories(const std::filesystem::path& directory);
Status rename_path(const std::filesystem::path& from, const std::filesystem::path& to);
/// Replaces `path` as one step that a crash cannot tear: temporary beside it, sync, rename, sync of the directory.
Status replace_file(const std::filesystem::path& path, std::string_view content, bool secret = false);
/// ErrorCode::input if it is longer than `bytes_max`.
Result<std::string> read_whole_file(const std::filesystem::path& path, std::uint64_t bytes_max);
/// The name that a writer uses beside `path` until it is done: .NAME.TAG-PID.
std::filesystem::path hidden_beside(const std::filesystem::path& path, std::string_view tag);
/// Deletes files and directories in `directory` named .PREFIX…TAG…: what writers that crashed left behind.
void remove_leftovers(const std::filesystem::path& directory, std::string_view prefix, std::string_view tag);

}  // namespace motley::store
