#pragma once
// Heads that announce themselves on the local network as `_motley._tcp` (RFC 6762, 6763; docs/formats/pairing.md): what
// is asked, what a head answers, and what an answer says. Nothing in it is believed: a code proves what is. Pure.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "discovery/dns.h"

namespace motley::discovery {

inline constexpr std::uint16_t kPort = 5353;
inline constexpr std::size_t kHeadsMax = 64;     // that are listed
inline constexpr std::size_t kAddressesMax = 8;  // of a head

struct FoundHead {
  std::string name;                    // of its machine, for a screen
  std::array<std::uint8_t, 32> key{};  // SHA-256 of its public key
  std::uint16_t port = 0;
  std::vector<std::string> addresses{};
  bool operator==(const FoundHead&) const = default;
};

std::vector<std::byte> question();
/// `from`: the address that sent it, which comes before those that it names.
std::vector<FoundHead> heads_in(const Message& message, const std::string& from);
/// Adds them to those that were found before, at most kHeadsMax: by key, so that a head has its addresses of all
/// networks. Whether there is a new one.
bool add_heads(std::vector<FoundHead>& found, const std::vector<FoundHead>& more);

/// What a head says of itself.
class Announcement {
 public:
  Announcement(const std::string& machine, const std::array<std::uint8_t, 32>& key, std::uint16_t port);

  /// Without being asked, when it begins; `seconds` 0: when it ends.
  [[nodiscard]] std::vector<std::byte> unasked(std::array<std::uint8_t, 4> ip, bool begins) const;

  struct Reply {
    std::vector<std::byte> bytes;
    bool to_all = true;  // else to who asked
  };
  /// `network`: by whose number it came; `source_port`: of who asks. Nothing where it is not asked for, was said to all
  /// of that network in the last second, or too many asked for answers of their own.
  std::optional<Reply> answer(const Message& message, std::size_t network, std::array<std::uint8_t, 4> ip,
                              std::uint16_t source_port, Time now);

 private:
  [[nodiscard]] Message message(std::array<std::uint8_t, 4> ip, bool to_all, std::uint32_t seconds) const;
  [[nodiscard]] bool asked_for(const Message& message) const;

  Record pointer_, service_, text_;
  std::vector<std::optional<Time>> said_;  // by network
  std::optional<Time> second_began_{};
  unsigned replies_in_second_ = 0;
};

}  // namespace motley::discovery
