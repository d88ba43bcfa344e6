#pragma once
// What the two ends of a measurement say to each other: docs/formats/link.md is the specification. Pure; any thread.

#include <chrono>
#include <cstdint>
#include <optional>

#include "transport/interface.h"
#include "wire/frame.h"

namespace motley::bench {

using transport::Interface;
using transport::InterfaceKind;

inline constexpr std::size_t kLinkGuestsMax = 16;          // connections that have proven the secret, at once
inline constexpr std::chrono::seconds kLinkFloodTime{30};  // longest flood of a listener that nobody stops
inline constexpr std::size_t kLinkWindowBytes = 2 << 20;   // queued above the kernel's buffers
inline constexpr std::string_view kLinkRole = "link";      // of the proof

enum class Verb : std::uint64_t {
  echo = 1,   // to the listener, which sends it back
  flood = 2,  // to the listener: send gradient frames until `stop`
  stop = 3,
  done = 4,   // by the listener, behind the last frame of a flood
  got = 5,    // by the listener after each gradient frame: how many bytes it has had
  facts = 6,  // to the listener, which answers with its interface
};

struct Word {
  Verb verb = Verb::echo;
  std::uint64_t number = 0;
  bool operator==(const Word&) const = default;
};

wire::Frame to_frame(const Word& word, std::uint64_t run);
/// Empty for what no version of this has ever said.
std::optional<Word> parse_word(const wire::Frame& frame) noexcept;

/// Kind, duplex and speed; not the name.
std::uint64_t pack(const Interface& facts) noexcept;
Interface unpack(std::uint64_t number) noexcept;

}  // namespace motley::bench
