#pragma once
// What is asked for and has not come: puts content together from block frames, and believes none whose hash is another.
// Pure.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "blocks/hash.h"
#include "motley/bytes.h"
#include "motley/result.h"
#include "wire/frame.h"
#include "wire/messages.h"

namespace motley::blocks {

inline constexpr int kAttemptsMax = 3;  // at content that came with another hash

class Asking {
 public:
  explicit Asking(HashOf hash_of) : hash_of_(std::move(hash_of)) {}

  [[nodiscard]] bool has_room() const noexcept;
  /// The Want to be sent; nothing, where it is open already. REQUIRES has_room() and bytes from 1 to
  /// wire::kManifestBytesMax.
  std::optional<wire::Want> want(const Hash& hash, std::size_t bytes);

  struct Added {
    std::optional<Hash> whole{};  // it has come, and is open no longer
    std::vector<std::byte> content{};
    std::optional<wire::Want> again{};  // what came was something else
  };
  /// The segments of one block come in their order. Errors: protocol, for what nobody asked for; mismatch, where
  /// content came wrong for the last time.
  Result<Added> add(const wire::Frame& frame);
  /// The connection is gone: what had begun begins anew. What is to be asked for on the next one.
  std::vector<wire::Want> restart();
  [[nodiscard]] std::size_t open() const noexcept { return open_.size(); }

 private:
  struct Open {
    Hash hash{};
    std::size_t bytes = 0;
    int attempts = 0;
    std::vector<std::byte> content{};
  };
  static wire::Want asked(const Open& open);

  HashOf hash_of_;
  std::map<std::uint64_t, Open> open_;  // by prefix: frames have no more of the hash
};

}  // namespace motley::blocks
