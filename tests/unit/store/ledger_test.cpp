#include "store/ledger.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "data/order.h"
#include "store/ledger_record.h"
#include "temporary.h"

namespace motley::store {
namespace {

using test::message;
using test::TemporaryDirectory;

// 10 samples in batches of 4: steps of 4, 4 and 2.
const LedgerHeader kHeader{0xABCDEF0123456789, 7, 10, 4, "mnist/60000/0123456789abcdef"};

LedgerStep step(std::uint64_t number, std::vector<LedgerRange> ranges) {
  return {number, 1, 4, 9.25, std::move(ranges)};
}
LedgerStep whole(std::uint64_t number) {
  return number % 3 == 2 ? step(number, {{0, 2, "desk/cuda:0"}})
                         : step(number, {{0, 3, "desk/cuda:0"}, {3, 1, "laptop/cpu"}});
}

Ledger written(const std::filesystem::path& file, const std::vector<LedgerStep>& steps) {
  auto writer = LedgerWriter::open(file, kHeader);
  EXPECT_TRUE(writer) << message(writer);
  for (const LedgerStep& one : steps) EXPECT_TRUE(writer->append(one));
  EXPECT_TRUE(writer->sync());
  auto ledger = read_ledger(file);
  EXPECT_TRUE(ledger) << message(ledger);
  return ledger ? *ledger : Ledger{};
}

TEST(Ledger, KeepsWhatItIsGiven) {
  const TemporaryDirectory directory;
  std::vector<LedgerStep> steps{whole(0), whole(1), whole(2), whole(3)};
  steps[1].gradient_norm = 2.5;
  const Ledger ledger = written(directory / "ledger", steps);
  EXPECT_EQ(ledger.header, kHeader);
  EXPECT_EQ(ledger.steps, steps);
  EXPECT_FALSE(ledger.torn);
}

TEST(Ledger, WhatCountedInALaterStepIsOfItsOwn) {
  const TemporaryDirectory directory;
  LedgerStep cut = whole(0);
  cut.ranges.pop_back();  // its last position is owed
  LedgerStep later = whole(1);
  later.late = {{.step = 0, .at = 1, .ranges = {{3, 1, "laptop/cpu"}}}};
  Ledger ledger = written(directory / "ledger", {cut, later});
  EXPECT_EQ(ledger.steps, (std::vector<LedgerStep>{cut, later}));
  EXPECT_EQ(audit(ledger).missing, 0U);
  EXPECT_EQ(audit(ledger).duplicate, 0U);
  EXPECT_EQ(audit(ledger).samples, 8U);
  EXPECT_EQ(owed(ledger, 1), (std::vector<Owed>{{0, 3, 1}}));
  EXPECT_TRUE(owed(ledger, 2).empty());
  EXPECT_EQ(order_of(ledger, 0).size(), 8U);
  auto writer = LedgerWriter::open(directory / "ledger", kHeader);
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->append(LedgerRollback{1, 2}));  // and with the step what was late in it
  ledger = *read_ledger(directory / "ledger");
  EXPECT_EQ(audit(ledger).missing, 1U);
  EXPECT_EQ(owed(ledger, 1), (std::vector<Owed>{{0, 3, 1}}));
}

TEST(Ledger, AStepOfThreeWorkersTakesLittleRoom) {
  const TemporaryDirectory directory;
  auto writer = LedgerWriter::open(directory / "ledger", kHeader);
  ASSERT_TRUE(writer);
  const LedgerStep one = step(5, {{0, 300, "desk/cuda:0"}, {300, 150, "laptop/mps"}, {450, 62, "old/cpu"}});
  ASSERT_TRUE(writer->append(one));
  const auto before = std::filesystem::file_size(directory / "ledger");
  ASSERT_TRUE(writer->append(one));
  EXPECT_LE(std::filesystem::file_size(directory / "ledger") - before, 48U);
}

TEST(Ledger, GoesOnWhereItEndedAndKnowsItsWorkers) {
  const TemporaryDirectory directory;
  written(directory / "ledger", {whole(0)});
  const Ledger ledger = written(directory / "ledger", {whole(1), step(2, {{0, 2, "new/cpu"}})});
  EXPECT_EQ(ledger.steps, (std::vector<LedgerStep>{whole(0), whole(1), step(2, {{0, 2, "new/cpu"}})}));
}

TEST(Ledger, RefusesAnotherRun) {
  const TemporaryDirectory directory;
  written(directory / "ledger", {whole(0)});
  LedgerHeader other = kHeader;
  other.seed = 8;
  const auto writer = LedgerWriter::open(directory / "ledger", other);
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().code, ErrorCode::mismatch);
  EXPECT_NE(writer.error().message.find("the seed is 7 there and 8 here"), std::string::npos) << message(writer);
  EXPECT_EQ(read_ledger(directory / "ledger")->steps.size(), 1U);
}

TEST(Ledger, RefusesAnotherOrder) {
  const TemporaryDirectory directory;
  LedgerHeader ordered = kHeader;
  ordered.drop_last = ordered.in_order = true;
  ASSERT_TRUE(LedgerWriter::open(directory / "ledger", ordered));
  ASSERT_TRUE(LedgerWriter::open(directory / "ledger", ordered));
  EXPECT_EQ(read_ledger(directory / "ledger")->header, ordered);
  const auto writer = LedgerWriter::open(directory / "ledger", kHeader);
  ASSERT_FALSE(writer);
  EXPECT_NE(writer.error().message.find("drop_last is 1 there and 0 here"), std::string::npos) << message(writer);
}

TEST(Ledger, GoesOnWithDataThatDifferInTheirLastBits) {
  const TemporaryDirectory directory;
  LedgerHeader looked = kHeader;
  looked.train_fingerprint = "10 samples of float32; contents: 3:00c0ffee:1,2,3,4";
  ASSERT_TRUE(LedgerWriter::open(directory / "ledger", looked));
  looked.train_fingerprint.back() = '9';
  EXPECT_TRUE(LedgerWriter::open(directory / "ledger", looked));
  looked.train_fingerprint = "10 samples of float32; contents: 3:00c0ffef:1,2,3,4";
  const auto writer = LedgerWriter::open(directory / "ledger", looked);
  ASSERT_FALSE(writer);
  EXPECT_NE(writer.error().message.find("the first of them sample 3"), std::string::npos) << message(writer);
}

TEST(Ledger, RefusesAHeaderOutOfBounds) {
  const TemporaryDirectory directory;
  LedgerHeader none = kHeader;
  none.samples = 0;
  EXPECT_EQ(LedgerWriter::open(directory / "ledger", none).error().code, ErrorCode::input);
}

TEST(Ledger, AppliesRollbacks) {
  const TemporaryDirectory directory;
  auto writer = LedgerWriter::open(directory / "ledger", kHeader);
  for (std::uint64_t i = 0; i < 5; ++i) ASSERT_TRUE(writer->append(whole(i)));
  ASSERT_TRUE(writer->append(LedgerRollback{2, 2}));
  LedgerStep again = whole(2);
  again.incarnation = 2;
  ASSERT_TRUE(writer->append(again));
  const auto ledger = read_ledger(directory / "ledger");
  ASSERT_TRUE(ledger);
  EXPECT_EQ(ledger->rollbacks, 1U);
  EXPECT_EQ(ledger->steps, (std::vector<LedgerStep>{whole(0), whole(1), again}));
  EXPECT_TRUE(audit(*ledger).findings.empty());
}

// A kill at any moment leaves a prefix of what was written; a writer goes on behind the last whole record.
TEST(Ledger, EveryTruncationIsAPrefixAndCanBeContinued) {
  const TemporaryDirectory directory;
  const std::vector<LedgerStep> steps{whole(0), whole(1), whole(2)};
  written(directory / "ledger", steps);
  const std::string file = test::slurp(directory / "ledger");
  std::size_t steps_before = 0;
  for (std::size_t size = 0; size < file.size(); ++size) {
    test::spill(directory / "cut", file.substr(0, size));
    const auto ledger = read_ledger(directory / "cut");
    if (ledger) {
      ASSERT_LE(ledger->steps.size(), steps.size());
      ASSERT_GE(ledger->steps.size(), steps_before);
      steps_before = ledger->steps.size();
      EXPECT_TRUE(std::equal(ledger->steps.begin(), ledger->steps.end(), steps.begin()));
    } else {
      EXPECT_EQ(steps_before, 0U);
      EXPECT_EQ(ledger.error().code, ErrorCode::input);
    }
    const Ledger continued = written(directory / "cut", {whole(7)});
    ASSERT_EQ(continued.steps.size(), steps_before + 1) << "cut to " << size;
    EXPECT_EQ(continued.steps.back(), whole(7));
    EXPECT_FALSE(continued.torn);
  }
}

TEST(Ledger, DamageBeforeASyncIsAnErrorThatNamesTheOffset) {
  const TemporaryDirectory directory;
  written(directory / "ledger", {whole(0), whole(1)});
  const std::string file = test::slurp(directory / "ledger");
  for (std::size_t at = 0; at + kRecordOverhead < file.size(); ++at) {
    std::string damaged = file;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    test::spill(directory / "bad", damaged);
    const auto ledger = read_ledger(directory / "bad");
    ASSERT_FALSE(ledger) << "bit flipped in byte " << at;
    const bool named = message(ledger).find("at byte ") != std::string::npos || at < kLedgerMagic.size();
    EXPECT_TRUE(named) << message(ledger);
    EXPECT_FALSE(LedgerWriter::open(directory / "bad", kHeader)) << "a damaged ledger must not be cut off";
    EXPECT_EQ(test::slurp(directory / "bad"), damaged);
  }
}

TEST(Ledger, ATailOfZeroesIsTorn) {
  const TemporaryDirectory directory;
  written(directory / "ledger", {whole(0)});
  test::spill(directory / "zeroes", test::slurp(directory / "ledger") + std::string(5000, '\0'));
  const auto ledger = read_ledger(directory / "zeroes");
  ASSERT_TRUE(ledger) << message(ledger);
  EXPECT_TRUE(ledger->torn);
  EXPECT_EQ(ledger->steps.size(), 1U);
}

TEST(Ledger, AnotherFileIsNoLedger) {
  const TemporaryDirectory directory;
  test::spill(directory / "text", "step 1\nstep 2\n");
  EXPECT_NE(message(read_ledger(directory / "text")).find("is no ledger"), std::string::npos);
}

// Kept equal by docs/formats/ledger.md.
TEST(Ledger, GoldenBytes) {
  const TemporaryDirectory directory;
  {
    auto writer = LedgerWriter::open(directory / "ledger", {1, 2, 300, 64, "fp"});
    ASSERT_TRUE(writer->append(LedgerStep{5, 1, 64, 1.5, {{0, 40, "w"}, {40, 24, "w"}}}));
    ASSERT_TRUE(writer->append(LedgerRollback{4, 2}));
    ASSERT_TRUE(writer->sync());
  }
  std::string hex;
  for (const char c : test::slurp(directory / "ledger")) {
    constexpr const char* kDigits = "0123456789abcdef";
    hex += kDigits[(static_cast<unsigned char>(c)) >> 4];
    hex += kDigits[c & 15];
  }
  EXPECT_EQ(hex, test::slurp(std::filesystem::path(MOTLEY_TEST_DATA) / "ledger.hex"));
}

TEST(Audit, ASoundRunHasEverySampleOnce) {
  const TemporaryDirectory directory;
  std::vector<LedgerStep> steps;
  for (std::uint64_t i = 0; i < 7; ++i) steps.push_back(whole(i));
  const Ledger ledger = written(directory / "ledger", steps);
  const Audit result = audit(ledger);
  EXPECT_EQ(result.epochs, 3U);
  EXPECT_EQ(result.samples, 24U);
  EXPECT_EQ(result.missing, 0U);
  EXPECT_EQ(result.duplicate, 0U);
  EXPECT_TRUE(result.findings.empty());
}

Audit audit_of(std::vector<LedgerStep> steps) { return audit({kHeader, std::move(steps), 0, false}); }

TEST(Audit, CountsWhatIsMissing) {
  const Audit result = audit_of({step(0, {{0, 1, "a"}, {2, 1, "a"}}), whole(1)});
  EXPECT_EQ(result.missing, 2U);
  EXPECT_EQ(result.samples, 6U);
  EXPECT_EQ(result.findings,
            (std::vector<std::string>{"step 0: position 1 not covered", "step 0: position 3 not covered"}));
}

TEST(Audit, WhatRoundsLackIsOwedWhileTheyGoOn) {
  const Ledger ledger{kHeader, {step(0, {{0, 1, "a"}, {2, 1, "a"}}), whole(2)}, 0, false};
  const Audit goes_on = audit(ledger, true), ended = audit(ledger);
  EXPECT_EQ(goes_on.owed, 2U);
  EXPECT_EQ(goes_on.missing, 4U) << "a step that is not there at all";
  EXPECT_EQ(goes_on.findings.size(), 1U);
  EXPECT_EQ(ended.owed, 0U);
  EXPECT_EQ(ended.missing, 6U);
}

TEST(Audit, CountsWhatIsThereTwice) {
  const Audit result = audit_of({step(0, {{0, 3, "a"}, {1, 3, "b"}})});
  EXPECT_EQ(result.duplicate, 2U);
  EXPECT_EQ(result.missing, 0U);
  EXPECT_EQ(result.samples, 4U);
  EXPECT_EQ(result.findings, std::vector<std::string>{"step 0: positions 1 to 2 of b covered before"});
}

TEST(Audit, CountsSkippedAndRepeatedSteps) {
  const Audit skipped = audit_of({whole(0), whole(4)});
  EXPECT_EQ(skipped.missing, 4U + 2 + 4);
  EXPECT_EQ(skipped.findings, std::vector<std::string>{"steps 1 to 3 are not in the ledger (10 samples)"});
  const Audit repeated = audit_of({whole(0), whole(0)});
  EXPECT_EQ(repeated.duplicate, 4U);
  EXPECT_EQ(repeated.findings, std::vector<std::string>{"step 0 is committed more than once"});
}

TEST(Audit, PositionsPastTheEndOfAStepAreFound) {
  const Audit result = audit_of({whole(0), whole(1), step(2, {{0, 4, "a"}})});
  EXPECT_EQ(result.duplicate, 2U);
  EXPECT_EQ(result.samples, 10U);
  EXPECT_EQ(result.findings, std::vector<std::string>{"step 2: positions 2 to 3 of a past the end of the step"});
}

TEST(Audit, NumbersThatNoRunReachesDoNotOverflow) {
  const Audit result = audit_of({step(kLedgerStepMax, {{~std::uint64_t{0}, ~std::uint64_t{0}, "a"}})});
  EXPECT_GT(result.missing, 0U);
  EXPECT_FALSE(result.findings.empty());
  EXPECT_FALSE(audit(Ledger{}).findings.empty());
}

TEST(Audit, SaysNoMoreThanPeopleRead) {
  std::vector<LedgerStep> steps;
  for (std::uint64_t i = 0; i < 300; ++i) steps.push_back(step(i, {}));
  const Audit result = audit_of(steps);
  EXPECT_EQ(result.missing, 1000U);
  EXPECT_EQ(result.findings.size(), 101U);
  EXPECT_EQ(result.findings.back(), "… and 200 more");
}

// 10 samples in batches of 4 without the short one: two steps an epoch.
TEST(Audit, WhatAnEpochLeavesOutIsNotMissing) {
  LedgerHeader header = kHeader;
  header.drop_last = true;
  std::vector<LedgerStep> steps;
  for (std::uint64_t i = 0; i < 5; ++i) steps.push_back(step(i, {{0, 4, "desk/cpu"}}));
  const Ledger ledger{header, steps, 0, false};
  const Audit result = audit(ledger);
  EXPECT_EQ(result.epochs, 3U);
  EXPECT_EQ(result.samples, 20U);
  EXPECT_EQ(result.missing + result.duplicate, 0U);
  EXPECT_TRUE(result.findings.empty());
  const data::SampleOrder order(header.seed, 1, header.samples);
  std::vector<std::uint64_t> expected(8);
  order.fill(0, expected);
  EXPECT_EQ(order_of(ledger, 1), expected);
  EXPECT_EQ(audit({header, {steps[0], steps[3]}, 0, false}).missing, 8U);
}

TEST(OrderOf, MayBeThatOfTheDataSet) {
  LedgerHeader header = kHeader;
  header.in_order = true;
  const Ledger ledger{header, {whole(0), whole(1), whole(2), whole(3)}, 0, false};
  EXPECT_EQ(order_of(ledger, 0), (std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(order_of(ledger, 1), (std::vector<std::uint64_t>{0, 1, 2, 3}));
}

TEST(OrderOf, IsTheSampleOrderOfTheEpoch) {
  std::vector<LedgerStep> steps;
  for (std::uint64_t i = 0; i < 5; ++i) steps.push_back(whole(i));
  const Ledger ledger{kHeader, steps, 0, false};
  const std::vector<std::uint64_t> first = order_of(ledger, 0);
  ASSERT_EQ(first.size(), 10U);
  const data::SampleOrder order(kHeader.seed, 0, kHeader.samples);
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_EQ(first[i], order.at(i));
  EXPECT_EQ(std::set(first.begin(), first.end()).size(), 10U);
  EXPECT_EQ(order_of(ledger, 1).size(), 8U);  // begun, not finished
  EXPECT_TRUE(order_of(ledger, 2).empty());
}

// 10 samples: a step of 4, then from step 1 on steps of 5; from step 4 on steps of 2.
TEST(Ledger, KeepsChangesOfTheBatch) {
  const TemporaryDirectory directory;
  auto writer = LedgerWriter::open(directory / "ledger", kHeader);
  ASSERT_TRUE(writer) << message(writer);
  const std::vector<BatchChange> changes{{1, 5}, {4, 2}};
  const auto commit = [&](std::uint64_t number, std::uint64_t count) {
    ASSERT_TRUE(writer->append(step(number, {{0, count, "desk/cpu"}})));
  };
  commit(0, 4);
  ASSERT_TRUE(writer->append(changes[0]));
  commit(1, 5);
  commit(2, 1);
  commit(3, 5);
  ASSERT_TRUE(writer->append(changes[1]));
  commit(4, 2);
  const Ledger ledger = *read_ledger(directory / "ledger");
  EXPECT_EQ(ledger.batch_changes, changes);
  const Audit result = audit(ledger);
  EXPECT_EQ(std::tuple(result.epochs, result.samples, result.missing, result.duplicate), std::tuple(2U, 17U, 0U, 0U));
  EXPECT_EQ(order_of(ledger, 0).size(), 10U);
  std::vector<std::uint64_t> second(7);
  data::SampleOrder(7, 1, 10).fill(0, second);
  EXPECT_EQ(order_of(ledger, 1), second);
}

TEST(Ledger, ARollbackTakesBackChangesOfTheBatch) {
  const TemporaryDirectory directory;
  auto writer = LedgerWriter::open(directory / "ledger", kHeader);
  ASSERT_TRUE(writer) << message(writer);
  for (const std::uint64_t first : {1U, 3U}) ASSERT_TRUE(writer->append(BatchChange{first, 5}));
  ASSERT_TRUE(writer->append(LedgerRollback{3, 2}));
  EXPECT_EQ(read_ledger(directory / "ledger")->batch_changes, (std::vector<BatchChange>{{1, 5}}));
  ASSERT_TRUE(writer->append(BatchChange{3, 2})) << "there is room for another one";
  EXPECT_EQ(read_ledger(directory / "ledger")->batch_changes.size(), 2U);
}

TEST(Ledger, RefusesChangesOfTheBatchThatMakeNoSense) {
  const std::vector<std::vector<BatchChange>> senseless{{{0, 5}}, {{1, 0}}, {{3, 5}, {3, 6}}, {{3, 5}, {2, 6}}};
  for (const auto& changes : senseless) {
    const TemporaryDirectory directory;
    auto writer = LedgerWriter::open(directory / "ledger", kHeader);
    ASSERT_TRUE(writer) << message(writer);
    for (const BatchChange& change : changes) ASSERT_TRUE(writer->append(change));
    const auto ledger = read_ledger(directory / "ledger");
    ASSERT_FALSE(ledger);
    EXPECT_NE(ledger.error().message.find("a batch record that makes no sense"), std::string::npos) << message(ledger);
  }
}

}  // namespace
}  // namespace motley::store
