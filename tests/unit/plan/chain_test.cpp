#include "plan/chain.h"

#include <gtest/gtest.h>

#include <vector>

namespace motley::plan {
namespace {

TEST(Chain, SavesWhatTheCoordinatorsLinkCarriesMoreThanOnce) {
  const std::vector<double> links{10e6, 10e6, 10e6};
  EXPECT_DOUBLE_EQ(*chain_gain({.workers = 3, .bytes = 10e6, .hop_bytes = 1e6, .bytes_per_second = links}), 3 - 1.2);
  EXPECT_DOUBLE_EQ(*chain_gain({.workers = 3, .bytes = 10e6, .hop_bytes = 1e6, .bytes_per_second = links, .own = 40e6}),
                   1 - 1.2)
      << "where its own link is as fast as theirs together";
}

TEST(Chain, IsAsSlowAsItsSlowestLink) {
  const std::vector<double> links{100e6, 100e6, 2e6};
  EXPECT_LT(*chain_gain({.workers = 3, .bytes = 10e6, .hop_bytes = 1e6, .bytes_per_second = links}), 0);
}

TEST(Chain, NothingIsSaidOfLinksThatNobodyMeasured) {
  EXPECT_FALSE(chain_gain({.workers = 3, .bytes = 10e6, .hop_bytes = 1e6}));
  const std::vector<double> one{10e6};
  EXPECT_FALSE(chain_gain({.workers = 1, .bytes = 10e6, .hop_bytes = 1e6, .bytes_per_second = one}));
  EXPECT_FALSE(chain_pays({}, 1, true));
}

TEST(Chain, IsNotMadeAndGivenUpInTurn) {
  EXPECT_TRUE(chain_pays(0.03, 1, false));
  EXPECT_FALSE(chain_pays(0.015, 1, false));
  EXPECT_TRUE(chain_pays(0.015, 1, true));
  EXPECT_FALSE(chain_pays(0.005, 1, true));
}

}  // namespace
}  // namespace motley::plan
