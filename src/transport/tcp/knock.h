#pragma once
// The first packet of a connection with TLS: who knows the run shows it before there is any state for him here, as mac1
// of WireGuard does. It proves nobody and lets nobody in; it says whose turn is first (docs/formats/token.md). Private
// to tcp/.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <span>

#include "transport/crypto.h"

namespace motley::transport {

inline constexpr std::size_t kKnockBytes = 40;
using Knock = std::array<std::uint8_t, kKnockBytes>;

Knock make_knock(const Digest& key);

/// What the first bytes of a connection are. One thread at a time.
class Knocks {
 public:
  /// Without a key everybody is a stranger.
  explicit Knocks(std::optional<Digest> key) : key_(key) {}

  enum class Who : std::uint8_t { unclear, known, stranger };
  struct First {
    Who who = Who::unclear;  // until more has come
    std::size_t bytes = 0;   // of the knock, right or wrong
  };
  /// A knock is good once.
  First judge(std::span<const std::byte> bytes);

 private:
  static constexpr std::size_t kRememberedMax =
      4096;  // an older one that comes again is no more than a stranger's luck
  using Nonce = std::array<std::uint8_t, 16>;

  std::optional<Digest> key_;
  std::set<Nonce> seen_;
  std::deque<Nonce> order_;
};

}  // namespace motley::transport
