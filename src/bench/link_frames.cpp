#include "bench/link_frames.h"

#include <algorithm>

namespace motley::bench {

wire::Frame to_frame(const Word& word, std::uint64_t run) {
  wire::FrameHeader header;
  header.type = wire::FrameType::ack;
  header.run = run;
  header.subject = static_cast<std::uint64_t>(word.verb);
  header.version = word.number;
  return wire::seal(header, {});
}

std::optional<Word> parse_word(const wire::Frame& frame) noexcept {
  const std::uint64_t verb = frame.header.subject;
  if (frame.header.type != wire::FrameType::ack || !frame.body.empty()) return std::nullopt;
  if (verb < static_cast<std::uint64_t>(Verb::echo) || verb > static_cast<std::uint64_t>(Verb::facts)) {
    return std::nullopt;
  }
  return Word{static_cast<Verb>(verb), frame.header.version};
}

std::uint64_t pack(const Interface& facts) noexcept {
  return static_cast<std::uint64_t>(facts.kind) | (facts.half_duplex ? 1U << 8 : 0U) |
         static_cast<std::uint64_t>(facts.mbit_per_s) << 16;
}

Interface unpack(std::uint64_t number) noexcept {
  constexpr std::uint64_t kMbitMax = 1'000'000;
  const std::uint64_t kind = number & 0xFF, mbit_per_s = number >> 16;
  Interface facts;
  if (kind < transport::kInterfaceKinds) facts.kind = static_cast<InterfaceKind>(kind);
  facts.half_duplex = (number >> 8 & 1) != 0;
  if (mbit_per_s <= kMbitMax) facts.mbit_per_s = static_cast<std::uint32_t>(mbit_per_s);
  return facts;
}

}  // namespace motley::bench
