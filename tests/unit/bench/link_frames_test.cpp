#include "bench/link_frames.h"

#include <gtest/gtest.h>

namespace motley::bench {
namespace {

TEST(LinkFrames, FactsKeepTheirMeaning) {
  const Interface facts{InterfaceKind::wifi, 2500, true, ""};
  EXPECT_EQ(unpack(pack(facts)), facts);
  EXPECT_EQ(pack(facts), 0x09C40103U);
  EXPECT_EQ(unpack(pack({InterfaceKind::cable, 1000, false, "eth0"})),
            (Interface{InterfaceKind::cable, 1000, false, ""}));
}

TEST(LinkFrames, FactsOfSomebodyWhoMeansIll) {
  EXPECT_EQ(unpack(0xFFFF'FFFF'FFFF'FFFF), (Interface{InterfaceKind::unknown, 0, true, ""}));
  EXPECT_EQ(unpack(transport::kInterfaceKinds).kind, InterfaceKind::unknown);
}

TEST(LinkFrames, Words) {
  for (std::uint64_t verb = 1; verb <= 6; ++verb) {
    const Word word{static_cast<Verb>(verb), 7};
    EXPECT_EQ(parse_word(to_frame(word, 5)), word);
  }
  wire::Frame frame = to_frame({Verb::echo, 7}, 5);
  EXPECT_EQ(frame.header.run, 5U);
  for (const std::uint64_t verb : {std::uint64_t{0}, std::uint64_t{7}, ~std::uint64_t{0}}) {
    frame.header.subject = verb;
    EXPECT_EQ(parse_word(frame), std::nullopt);
  }
  frame = to_frame({Verb::stop, 0}, 5);
  frame.body = SharedBytes::copy_of(std::vector<std::byte>(1));
  EXPECT_EQ(parse_word(frame), std::nullopt);
  frame = to_frame({Verb::stop, 0}, 5);
  frame.header.type = wire::FrameType::gradient;
  EXPECT_EQ(parse_word(frame), std::nullopt);
}

}  // namespace
}  // namespace motley::bench
