#include "runtime/persist/checkpoint_due.h"

#include <gtest/gtest.h>

namespace motley::runtime {
namespace {

TEST(CheckpointDue, TheyTakeAHundredthOfTheTime) {
  EXPECT_FALSE(checkpoint_due(29.9, 0.3, 0));
  EXPECT_TRUE(checkpoint_due(30, 0.3, 0));
  EXPECT_FALSE(checkpoint_due(399, 4, 0));
  EXPECT_TRUE(checkpoint_due(400, 4, 0));
}

TEST(CheckpointDue, ThoseOfSmallModelsAreSomeSecondsApart) {
  for (const double took : {0.0, 0.001, 0.05}) {
    EXPECT_FALSE(checkpoint_due(4.9, took, 0)) << took;
    EXPECT_TRUE(checkpoint_due(5, took, 0)) << took;
  }
}

TEST(CheckpointDue, WhatWasAskedForCounts) {
  EXPECT_FALSE(checkpoint_due(0.4, 0.001, 0.5));
  EXPECT_TRUE(checkpoint_due(0.5, 2, 0.5));
  EXPECT_FALSE(checkpoint_due(3599, 0.001, 3600));
}

}  // namespace
}  // namespace motley::runtime
