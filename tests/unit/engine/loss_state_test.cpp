// What the loss gets: cut, put together, and known by its number.

#include "engine/loss_state.h"

#include <gtest/gtest.h>

#include "wire/limits.h"

namespace motley::engine {
namespace {

SharedBytes bytes_of_state(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7 % 251);
  return SharedBytes::copy_of(bytes);
}

wire::State decoded(const SharedBytes& body) {
  const Result<wire::Message> message = wire::decode(body.bytes());
  EXPECT_TRUE(message.ok());
  return std::get<wire::State>(*message);
}

bool same(const SharedBytes& a, const SharedBytes& b) { return std::ranges::equal(a.bytes(), b.bytes()); }

class LossStatePieces : public testing::TestWithParam<std::size_t> {};

TEST_P(LossStatePieces, ComeTogetherAgain) {
  const LossState state{3, bytes_of_state(GetParam())};
  const std::vector<SharedBytes> pieces = pieces_of(state);
  EXPECT_EQ(pieces.size(),
            std::max<std::size_t>(1, (GetParam() + wire::kSegmentBytesMax - 1) / wire::kSegmentBytesMax));
  LossStateAssembler assembler;
  for (const SharedBytes& piece : pieces) {
    EXPECT_EQ(assembler.state().number, 0U);
    ASSERT_TRUE(assembler.add(decoded(piece)).ok());
  }
  EXPECT_EQ(assembler.state().number, 3U);
  EXPECT_TRUE(same(assembler.state().bytes, state.bytes));
}

INSTANTIATE_TEST_SUITE_P(Sizes, LossStatePieces,
                         testing::Values(0, 1, wire::kSegmentBytesMax, wire::kSegmentBytesMax + 1,
                                         wire::kLossStateBytesMax));

TEST(LossState, RefusesWhatIsOutOfOrder) {
  const wire::State first{2, 10, 0, {1, 2, 3, 4}}, second{2, 10, 4, {5, 6, 7, 8, 9, 10}};
  const auto refused = [&](const std::vector<wire::State>& before, const wire::State& piece) {
    LossStateAssembler assembler;
    for (const wire::State& each : before) EXPECT_TRUE(assembler.add(each).ok());
    const Status added = assembler.add(piece);
    return !added.ok() && added.error().code == ErrorCode::protocol;
  };
  EXPECT_TRUE(refused({}, second)) << "the first piece is missing";
  EXPECT_TRUE(refused({first}, first)) << "twice";
  EXPECT_TRUE(refused({first}, {3, 10, 4, {5}})) << "another number before the rest";
  EXPECT_TRUE(refused({first}, {2, 11, 4, {5}})) << "another size";
  EXPECT_TRUE(refused({first}, {2, 10, 4, {1, 2, 3, 4, 5, 6, 7}})) << "more than there are";
  EXPECT_TRUE(refused({first}, {2, 10, 4, {}})) << "nothing";
  EXPECT_TRUE(refused({first, second}, {2, 1, 0, {1}})) << "the number is there already";
  EXPECT_TRUE(refused({first, second}, {1, 1, 0, {1}})) << "an older number";
  EXPECT_TRUE(refused({}, {0, 1, 0, {1}})) << "no number";
  EXPECT_TRUE(refused({}, {1, wire::kLossStateBytesMax + 1, 0, {1}})) << "too long";
  EXPECT_FALSE(refused({first, second}, {5, 1, 0, {1}}));
}

}  // namespace
}  // namespace motley::engine
