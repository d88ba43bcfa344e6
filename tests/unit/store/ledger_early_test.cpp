#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "store/ledger.h"
#include "store/ledger_record.h"
#include "temporary.h"

namespace motley::store {
namespace {

// 10 samples in batches of 4, of which the last position is a helper's.
const LedgerHeader kHelpedHeader{0xABCDEF0123456789, 7, 10, 4, "mnist/60000/0123456789abcdef"};

LedgerStep made(std::uint64_t number, bool early) {
  LedgerStep step{number, 1, 4, 9.25, {{0, 3, "desk/cuda:0"}, {3, 1, "laptop/cpu"}}};
  step.ranges.back().early = early;
  return step;
}

TEST(LedgerEarly, WhatWasComputedAtTheVersionBeforeIsNamed) {
  const test::TemporaryDirectory directory;
  {
    auto writer = LedgerWriter::open(directory / "ledger", kHelpedHeader);
    ASSERT_TRUE(writer);
    for (const LedgerStep& step : {made(0, false), made(1, true)}) ASSERT_TRUE(writer->append(step));
  }
  Ledger ledger = *read_ledger(directory / "ledger");
  EXPECT_EQ(ledger.steps, (std::vector<LedgerStep>{made(0, false), made(1, true)}));
  EXPECT_TRUE(audit(ledger).findings.empty());
  auto writer = LedgerWriter::open(directory / "ledger", kHelpedHeader);
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->append(LedgerRollback{1, 2}));
  ASSERT_TRUE(writer->append(made(1, false)));
  ledger = *read_ledger(directory / "ledger");
  EXPECT_EQ(ledger.steps, (std::vector<LedgerStep>{made(0, false), made(1, false)}));
}

TEST(LedgerEarly, ARecordThatMakesNoSenseIsDamage) {
  EXPECT_TRUE(encode_early(made(1, false)).empty());
  const auto early = decode_early(encode_early(made(1, true)));
  ASSERT_TRUE(early);
  EXPECT_EQ(early->step, 1U);
  EXPECT_EQ(early->ranges, (std::vector<std::uint64_t>{1}));
  EXPECT_FALSE(decode_early(std::string("\0\1\0", 3))) << "step 0 has no version before";
  EXPECT_FALSE(decode_early(std::string("\1\0", 2)));
  EXPECT_FALSE(decode_early(std::string("\1\2\3\3", 4))) << "twice the same";
  EXPECT_FALSE(decode_early(std::string("\1\1\3\3", 4)));
}

}  // namespace
}  // namespace motley::store
