#include "plan/worker_link.h"

#include <gtest/gtest.h>

namespace motley::plan {
namespace {

using codec::CodecId;

TEST(WorkerLink, OnlyNumbersOnTheCoordinatorsLinkGetFewerBitsAndOnlyWhereThatIsOpen) {
  struct Case {
    double follows;
    bool remote;
    CodecId codec;
  };
  for (const auto& [follows, remote, codec] : {Case{1, true, CodecId::int8}, Case{1, false, CodecId::fp32},
                                               Case{0, true, CodecId::fp32}, Case{0, false, CodecId::fp32}}) {
    WorkerLink told(follows), seen(follows);
    told.connected(remote);
    seen.connected(remote);
    EXPECT_EQ(told.first_version(0.8) < 1, codec == CodecId::int8) << "else it took a device so long, not a link";
    EXPECT_EQ(told.codec(), codec);
    for (int i = 0; i < 8; ++i) seen.closed(0.1, 0.04);
    EXPECT_EQ(seen.codec(), codec == CodecId::fp32 ? codec : CodecId::int4);
  }
}

TEST(WorkerLink, WhatIsLeftOutCountsWhenThePassIsClosed) {
  WorkerLink link(1);
  link.connected(true);
  for (int i = 0; i < 3; ++i) link.closed(0.1, 0.6);
  ASSERT_EQ(link.codec(), CodecId::int4);
  link.residual(3.5);
  EXPECT_EQ(link.codec(), CodecId::int4) << "not while leases are open";
  EXPECT_GT(link.closed(0.1, 0.6), 1);
  EXPECT_EQ(link.codec(), CodecId::int8);
}

TEST(WorkerLink, TellsOfEachContributionOnce) {
  WorkerLink link;
  EXPECT_FALSE(link.sent(0, {1'000'000, 0.1}, 1)) << "of no lease";
  EXPECT_FALSE(link.sent(1, {1'000'000, 0.001}, 1)) << "so short a time tells of delays";
  const auto first = link.sent(1, {1'000'000, 0.1}, 1);
  ASSERT_TRUE(first);
  EXPECT_DOUBLE_EQ(first->begin, 0.9);
  EXPECT_DOUBLE_EQ(first->end, 1);
  EXPECT_DOUBLE_EQ(first->bytes, 1e6);
  EXPECT_DOUBLE_EQ(first->before, 1e7) << "its own speed, where none was known";
  EXPECT_FALSE(link.sent(1, {1'000'000, 0.1}, 1)) << "again";
  EXPECT_DOUBLE_EQ(link.sent(2, {1'000'000, 0.2}, 1)->before, 1e7);
  EXPECT_DOUBLE_EQ(link.up_bytes_per_second().value_or(0), 0.95e7);
  EXPECT_FALSE(link.down_bytes_per_second());
  link.received({1'000'000, 0.5});
  EXPECT_DOUBLE_EQ(link.down_bytes_per_second().value_or(0), 2e6);
}

}  // namespace
}  // namespace motley::plan
