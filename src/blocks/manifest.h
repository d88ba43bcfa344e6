#pragma once
// A set of files: names, sizes, and the SHA-256 of each of their blocks, as text and back (docs/formats/session.md).
// Pure.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "blocks/hash.h"
#include "motley/result.h"

namespace motley::blocks {

struct Listed {
  std::string name{};  // below the set's root, with / between its parts
  std::uint64_t size = 0;
  std::vector<std::uint8_t> hashes{};  // of its blocks, one after the other

  [[nodiscard]] std::size_t count() const noexcept { return hashes.size() / sizeof(Hash); }
  [[nodiscard]] Hash hash(std::size_t block) const noexcept;
  /// Bytes of a block.
  [[nodiscard]] std::size_t bytes(std::size_t block) const noexcept;
};

struct Manifest {
  std::string name{};  // of the directory
  std::vector<Listed> files{};

  [[nodiscard]] std::uint64_t size() const noexcept;
};

[[nodiscard]] std::string to_text(const Manifest& manifest);
/// Of a directory, in the one form that to_text() writes. Errors: protocol, for anything else; input, for names as in
/// check_names().
Result<Manifest> parse_manifest(std::string_view text);
/// Errors: input, for a name that leads elsewhere or that some system cannot have, and for two that are one where case
/// does not count (as far as ASCII goes).
Status check_names(const Manifest& manifest);

}  // namespace motley::blocks
