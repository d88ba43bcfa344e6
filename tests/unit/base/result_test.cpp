#include "motley/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "base/assert.h"

namespace motley {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0)
    return Error{ErrorCode::input, "expected an even number, found " + std::to_string(value), "add 1"};
  return value / 2;
}

TEST(Result, HoldsAValue) {
  const Result<int> result = half(8);
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(static_cast<bool>(result));
  EXPECT_EQ(*result, 4);
  EXPECT_EQ(result.value(), 4);
}

TEST(Result, HoldsAnError) {
  const Result<int> result = half(7);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::input);
  EXPECT_EQ(result.error().message, "expected an even number, found 7");
  EXPECT_EQ(result.error().hint, "add 1");
}

TEST(Result, MovesWhatCannotBeCopied) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(5);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(**result, 5);
  const std::unique_ptr<int> out = std::move(result).value();
  EXPECT_EQ(*out, 5);
}

TEST(Result, MovesItsError) {
  Result<int> result = half(3);
  const Error error = std::move(result).error();
  EXPECT_EQ(error.message, "expected an even number, found 3");
}

TEST(Status, IsGoodUnlessSaidOtherwise) {
  EXPECT_TRUE(Status().ok());
  const Status bad = Error{ErrorCode::io, "expected a file, found none", ""};
  EXPECT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().code, ErrorCode::io);
}

constexpr ErrorCode kAllCodes[] = {ErrorCode::usage,    ErrorCode::input,  ErrorCode::io,       ErrorCode::disk_full,
                                   ErrorCode::network,  ErrorCode::busy,   ErrorCode::refused,  ErrorCode::protocol,
                                   ErrorCode::mismatch, ErrorCode::memory, ErrorCode::diverged, ErrorCode::interrupted,
                                   ErrorCode::internal};

TEST(ErrorCode, WordsDiffer) {
  std::set<std::string_view> words;
  for (const ErrorCode code : kAllCodes) words.insert(to_word(code));
  EXPECT_EQ(words.size(), std::size(kAllCodes));
  EXPECT_EQ(to_word(ErrorCode::disk_full), "disk-full");
}

TEST(ErrorCode, ExitStatus) {
  for (const ErrorCode code : kAllCodes) {
    int expected = 1;
    if (code == ErrorCode::usage || code == ErrorCode::input) expected = 2;
    if (code == ErrorCode::interrupted) expected = 130;
    EXPECT_EQ(exit_status(code), expected) << to_word(code);
  }
}

TEST(AssertDeathTest, ABugStopsTheProcessAndSaysWhere) {
  EXPECT_DEATH(MOTLEY_ASSERT(1 + 1 == 3), "motley: bug: 1 \\+ 1 == 3 does not hold at .*result_test.cpp");
}

}  // namespace
}  // namespace motley
