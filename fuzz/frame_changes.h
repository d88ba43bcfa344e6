#pragma once
// What may become of a frame on its way: another header, other bytes, another field of its message. One thread.

#include <algorithm>
#include <array>
#include <vector>

#include "choices.h"
#include "wire/frame.h"

namespace motley::fuzz {

inline void change_header(Choices& choices, wire::Frame& frame) {
  wire::FrameHeader& header = frame.header;
  switch (choices.below(11)) {
    case 0:
      return change(choices, header.pass);
    case 1:
      return change(choices, header.subject);
    case 2:
      return change(choices, header.version);
    case 3:
      return change(choices, header.chunk);
    case 4:
      return change(choices, header.offset);
    case 5:
      return change(choices, header.total);
    case 6:
      header.codec = static_cast<codec::CodecId>(choices.below(4));
      return;
    case 7:
      return change(choices, header.fence);
    case 8:
      return change(choices, header.run);
    case 9: {
      constexpr std::array kTypes{wire::FrameType::control,   wire::FrameType::weights, wire::FrameType::gradient,
                                  wire::FrameType::statistic, wire::FrameType::ack,     wire::FrameType::block,
                                  wire::FrameType::blob};
      header.type = kTypes.at(choices.below(kTypes.size()));
      return;
    }
    default: {  // a part of it
      const std::size_t cut = std::min<std::size_t>(choices.byte() * 4U, frame.body.size());
      frame.body = frame.body.slice(cut, frame.body.size() - cut);
      header.offset += static_cast<std::uint32_t>(cut);
      header.length = static_cast<std::uint32_t>(frame.body.size());
      return;
    }
  }
}

inline void change_body(Choices& choices, wire::Frame& frame) {
  std::vector<std::byte> bytes(frame.body.bytes().begin(), frame.body.bytes().end());
  for (std::size_t n = 1 + choices.below(4); n-- > 0 && !bytes.empty();)
    bytes[choices.byte() * 7919U % bytes.size()] = static_cast<std::byte>(choices.byte());
  frame.body = SharedBytes::copy_of(bytes);
}

inline void change_content(Choices& choices, wire::Frame& frame) {
  if (frame.header.type != wire::FrameType::control) return change_header(choices, frame);
  Result<wire::Message> message = wire::decode(frame.body.bytes());
  if (!message) return;
  change_a_field(choices, *message);
  frame.header.total = 0;
  frame = wire::seal(frame.header, wire::encode(*message));
}

}  // namespace motley::fuzz
