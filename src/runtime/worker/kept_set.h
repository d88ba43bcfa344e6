#pragma once
// A set of files that came from a head, as this machine keeps it for its user: below sets/HASH of a directory, where
// python/motley/_content/_kept.py keeps its own in the same form. What is in use is not dropped. One thread.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "blocks/catalogue.h"
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
  /// For others that fetch it. REQUIRES is_whole().
  [[nodiscard]] blocks::Catalogue::Offer offer() const;
  /// All files are there, in their sizes.
  [[nodiscard]] bool is_whole() const;
  /// The right to fill it; false: another process fills it.
  Result<bool> take();
  /// Makes room. Errors: disk_full, where the disk is too small for what is missing; io. REQUIRES take().
  Status begin(const std::filesystem::path& home);
  /// The file that is written next, and how many of its blocks are there and right; nothing: all are.
  Result<std::optional<std::pair<std::size_t, std::size_t>>> next();
  /// The next block of that file.
  Status append(std::span<const std::byte> content);
  /// All blocks are there.
  Status finish();

 private:
  KeptSet() = default;
  [[nodiscard]] std::filesystem::path place(const blocks::Listed& file) const { return path() / file.name; }

  std::filesystem::path home_;  // sets/HASH
  blocks::Manifest manifest_;
  store::File use_, fetching_, out_;
  std::size_t file_ = 0;  // that is written
  std::size_t written_ = 0;
};

}  // namespace motley::runtime
