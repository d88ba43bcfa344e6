#pragma once
// A set of files that came from a head, as this machine keeps it for its user: below sets/HASH of a directory, where
// python/motley/_content/_kept.py keeps its own in the same form. What is in use is not dropped. One thread.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "blocks/manifest.h"
#include "motley/result.h"
#include "store/file.h"

namespace motley::runtime {

class KeptSet {
 public:
  /// In use until this is gone. Errors: io, disk_full.
  static Result<KeptSet> open(const std::filesystem::path& home, blocks::Manifest manifest, std::string_view text);

  [[nodiscard]] const blocks::Manifest& manifest() const noexcept { return manifest_; }
  /// Of the directory.
  [[nodiscard]] std::filesystem::path path() const { return home_ / "tree" / manifest_.name; }
  /// All files are there, in their sizes.
  [[nodiscard]] bool is_whole() const;
  /// The right to fill it; false: another process fills it.
  Result<bool> take();
  /// Makes room and gives the files their sizes; by number, which blocks are there and right. Errors: disk_full, where
  /// the disk is too small for what is missing; io; interrupted, once it `stops`. REQUIRES take().
  Result<std::vector<bool>> begin(const std::filesystem::path& home, const std::atomic<bool>& stops);
  /// In any order. Errors: protocol, for a content of another size; io, disk_full. REQUIRES begin().
  Status put(std::size_t block, std::span<const std::byte> content);
  /// All blocks are there.
  Status finish();

 private:
  KeptSet() = default;
  [[nodiscard]] std::filesystem::path place(const blocks::Listed& file) const { return path() / file.name; }
  /// The file that has that block.
  [[nodiscard]] std::size_t file_of(std::size_t block) const;
  /// What of that file's blocks is there and right.
  Status look_at(std::size_t file, std::vector<bool>& here, const std::atomic<bool>& stops);

  std::filesystem::path home_;  // sets/HASH
  blocks::Manifest manifest_;
  std::vector<std::size_t> firsts_;  // by file: number of its first block; and how many there are
  store::File use_, fetching_, out_;
};

}  // namespace motley::runtime
