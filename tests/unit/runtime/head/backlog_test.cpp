#include "runtime/head/backlog.h"

#include <gtest/gtest.h>

#include <vector>

namespace motley::runtime {
namespace {

TEST(Backlog, StopsReadingBeyondTheLimitAndGoesOnAtHalfOfIt) {
  std::vector<bool> said;
  Backlog backlog(100, [&said](bool reading) { said.push_back(reading); });
  backlog.arrived(100);
  EXPECT_TRUE(said.empty());
  backlog.arrived(1);
  backlog.arrived(60);  // what was on its way
  EXPECT_EQ(said, std::vector<bool>{false});
  backlog.done(110);
  EXPECT_EQ(said, std::vector<bool>{false});
  backlog.done(1);
  EXPECT_EQ(said, (std::vector<bool>{false, true}));
  backlog.done(50);
  backlog.arrived(101);
  EXPECT_EQ(said, (std::vector<bool>{false, true, false}));
}

}  // namespace
}  // namespace motley::runtime
