#include "runtime/head/pairing_rule.h"

#include <gtest/gtest.h>

namespace motley::runtime {
namespace {

constexpr std::uint64_t kStart = 1'000'000'000;

// A code and its head, as time goes by.
class PairingRule : public testing::Test {
 protected:
  PairingRule() { make(); }
  bool make() { return take(CodeMade{now_ + kCodeSeconds}); }
  // Whether it is time for another code.
  bool take(const CodeEvent& event) {
    const CodeDecision decision = decide(state_, event, now_);
    state_ = decision.state;
    return decision.make_another;
  }
  bool guess_all() {
    bool another = false;
    for (unsigned i = 0; i < kWrongCodesMax; ++i) {
      EXPECT_TRUE(state_.good(now_));
      another = take(CodeWrong{});
    }
    return another;
  }
  std::uint64_t now_ = kStart;
  CodeState state_{};
};

TEST_F(PairingRule, ThereIsNoCodeBeforeTheFirst) {
  EXPECT_FALSE(CodeState{}.good(kStart));
  EXPECT_TRUE(decide(CodeState{}, CodeTick{}, kStart).make_another);
}

TEST_F(PairingRule, ACodeIsGoodForTenMinutes) {
  now_ += kCodeSeconds - 1;
  EXPECT_TRUE(state_.good(now_));
  EXPECT_FALSE(take(CodeTick{}));
  ++now_;
  EXPECT_FALSE(state_.good(now_));
  EXPECT_TRUE(take(CodeTick{}));
  EXPECT_EQ(state_.end, CodeEnd::old);
  EXPECT_FALSE(make());
  EXPECT_TRUE(state_.good(now_));
}

TEST_F(PairingRule, ACodeIsGoodForOneMachine) {
  EXPECT_TRUE(take(CodeUsed{}));
  EXPECT_EQ(state_.end, CodeEnd::used);
  EXPECT_FALSE(state_.good(now_));
  make();
  EXPECT_TRUE(state_.good(now_));
}

TEST_F(PairingRule, FiveWrongCodesMakeAnother) {
  for (unsigned wrong = 1; wrong < kWrongCodesMax; ++wrong) {
    EXPECT_FALSE(take(CodeWrong{}));
    EXPECT_EQ(state_.wrong, wrong);
    EXPECT_TRUE(state_.good(now_));
  }
  EXPECT_TRUE(take(CodeWrong{}));
  EXPECT_EQ(state_.end, CodeEnd::guessed);
  EXPECT_FALSE(state_.good(now_));
  make();
  EXPECT_EQ(state_.wrong, 0U);
  EXPECT_TRUE(state_.good(now_));
}

TEST_F(PairingRule, WrongCodesMakeAnotherOnceAMinute) {
  EXPECT_TRUE(guess_all());
  make();
  EXPECT_FALSE(guess_all());
  now_ += kGuessedCodeEverySeconds - 1;
  EXPECT_FALSE(take(CodeTick{}));
  ++now_;
  EXPECT_TRUE(take(CodeTick{}));
}

TEST_F(PairingRule, AfterWrongCodesAPairingMakesAnotherAtOnce) {
  guess_all();
  make();
  EXPECT_TRUE(take(CodeUsed{}));
  make();
  EXPECT_FALSE(guess_all()) << "which gives nobody more guesses";
}

TEST_F(PairingRule, AMachineWhoseClockIsSetBackWaitsNoLonger) {
  guess_all();
  make();
  guess_all();
  now_ -= 3600;
  EXPECT_TRUE(take(CodeTick{}));
}

TEST_F(PairingRule, AnHourOfGuessesIsBounded) {
  unsigned guesses = 0;
  for (const std::uint64_t end = now_ + 3600; now_ < end; ++now_) {
    if (take(CodeTick{})) make();
    for (; state_.good(now_); ++guesses)
      if (take(CodeWrong{})) make();
  }
  EXPECT_LE(guesses, 330U);
  EXPECT_GE(guesses, 300U);
}

}  // namespace
}  // namespace motley::runtime
