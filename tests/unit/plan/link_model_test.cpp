#include "plan/link_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace motley::plan {
namespace {

constexpr std::uint64_t kMega = 1'000'000;

TEST(BusyPart, IsAllOfItWhereTheWireIsWhatTakesLong) {
  const Transfer part = busy_part(std::vector<Departure>{{kMega, 10}, {3 * kMega, 10.1}, {kMega, 10.2}}, 15);
  EXPECT_EQ(part.bytes, 5 * kMega);
  EXPECT_DOUBLE_EQ(part.seconds, 5);
}

TEST(BusyPart, StartsWhereTheWireHadNothingToDo) {
  // The first is through after one second; the others follow at three and take four.
  const Transfer part = busy_part(std::vector<Departure>{{kMega, 0}, {3 * kMega, 3}, {kMega, 3.5}}, 7);
  EXPECT_EQ(part.bytes, 4 * kMega);
  EXPECT_DOUBLE_EQ(part.seconds, 4);
}

TEST(BusyPart, IsEmptyWhereComputingIsWhatTakesLong) {
  EXPECT_EQ(busy_part(std::vector<Departure>{{kMega, 0}, {kMega, 3}, {kMega, 6}}, 6.1).bytes, 0U);
  EXPECT_EQ(busy_part({}, 1).bytes, 0U);
}

TEST(LinkModel, ForgetsAndIgnoresWhatSaysNothing) {
  LinkModel link;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Transfer& nothing : {Transfer{}, {1000, 0.001}, {0, 1}, {kMega, nan}, {kMega, -1}, {kMega, INFINITY}})
    link.record(nothing);
  EXPECT_FALSE(link.bytes_per_second());
  for (int i = 0; i < 20; ++i) link.record({kMega, 0.1});
  EXPECT_NEAR(*link.bytes_per_second(), 1e7, 1);
  for (int i = 0; i < 60; ++i) link.record({kMega, 1});
  EXPECT_NEAR(*link.bytes_per_second(), 1e6, 1e5);
}

TEST(LinkModel, BelievesAFasterTransferSoonerThanASlowerOne) {
  LinkModel link;
  for (int i = 0; i < 20; ++i) link.record({kMega, 1});
  link.record({kMega, 2});
  EXPECT_NEAR(*link.bytes_per_second(), 0.95e6, 1);
  for (int i = 0; i < 4; ++i) link.record({kMega, 0.8});
  EXPECT_GT(*link.bytes_per_second(), 1.2e6);
  link.record({kMega, 0.02});  // however fast one of them looks
  EXPECT_LT(*link.bytes_per_second(), 2e6);
}

/// A pass in which all of these sent.
void record(SharedLink& link, const std::vector<Sender>& senders) {
  link.closed(senders.size());
  for (const Sender& each : senders) link.sent(each);
  link.closed(0);
}

/// A megabyte on the shared link, from `begin` to `end`.
Sender sender(double begin, double end, double before) { return {begin, end, 1e6, before}; }

TEST(SharedLink, IsKnownWhenSendersAreSlowerBesideOthers) {
  SharedLink link;
  const std::vector<Sender> together{sender(0, 2, 1e6), sender(0, 2, 0.5e6)};
  const std::vector<Sender> apart{sender(0, 1, 1e6), sender(1, 2, 1e6)};
  record(link, together);
  record(link, together);
  record(link, {sender(0, 1, 1e6), sender(0, 1, 1e6)});
  for (int i = 0; i < 2; ++i) {
    record(link, together);
    record(link, apart);
  }
  EXPECT_FALSE(link.bytes_per_second()) << "it may have been chance";
  record(link, together);
  EXPECT_DOUBLE_EQ(link.bytes_per_second().value_or(0), 1e6);
  record(link, {sender(0, 2, 0.5e6), sender(0, 2, 0.5e6)});  // what they reach apart was forgotten
  EXPECT_DOUBLE_EQ(link.bytes_per_second().value_or(0), 1e6);
}

TEST(SharedLink, IsSeenWhereSendersMeetForAPartOfTheTime) {
  SharedLink link;
  // The second starts when half of the first is through, and each is half as fast while both send.
  for (int i = 0; i < 3; ++i) record(link, {sender(0, 1.5, 1e6), sender(0.5, 2, 1e6)});
  EXPECT_DOUBLE_EQ(link.bytes_per_second().value_or(0), 1e6);
}

TEST(SharedLink, IsNotJudgedBySomeOfThoseThatSent) {
  SharedLink link;
  for (int i = 0; i < 10; ++i) {
    link.closed(3);
    for (int each = 0; each < 2; ++each) link.sent(sender(0, 2, 1e6));
  }
  link.closed(3);
  EXPECT_FALSE(link.bytes_per_second());
}

TEST(SharedLink, IsNotBlamedForALinkOfItsOwn) {
  SharedLink link;
  for (int i = 0; i < 10; ++i) {
    record(link, {sender(0, 2, 1e6)});
    record(link, {sender(0, 10, 1e6), sender(0, 2, 0.5e6)});
    record(link, {sender(0, 2, 1e6), sender(2, 4, 1e6)});
    record(link, {});
  }
  EXPECT_FALSE(link.bytes_per_second());
}

TEST(SharedLink, IsAsFastAsWhatItWasSeenToCarry) {
  SharedLink link;
  const std::vector<Sender> together{sender(0, 2, 1e6), sender(0, 2, 1e6)};
  for (int i = 0; i < 3; ++i) record(link, together);
  record(link, {sender(0, 0.25, 4e6)});
  EXPECT_DOUBLE_EQ(link.bytes_per_second().value_or(0), 4e6);
  link.fade(1);
  EXPECT_GT(link.bytes_per_second().value_or(0), 4e6);
  const double once = link.bytes_per_second().value_or(0);
  for (int i = 0; i < 20; ++i) link.fade(20);
  EXPECT_NEAR(link.bytes_per_second().value_or(0), once / kFade, 1) << "by all of 20, as by one";
  record(link, {sender(0, 1, 1e6), sender(0, 1, 1e6)});
  for (int i = 0; i < 3; ++i) record(link, together);
  EXPECT_DOUBLE_EQ(link.bytes_per_second().value_or(0), 1e6) << "it has become slower";
}

}  // namespace
}  // namespace motley::plan
