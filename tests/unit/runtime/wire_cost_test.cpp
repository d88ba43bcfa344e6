#include "runtime/wire_cost.h"

#include <gtest/gtest.h>

namespace motley::runtime {
namespace {

constexpr unsigned kMoreThanThereAre = 4096;

TEST(EndCost, NothingKeepsAnAcceleratorFromComputing) {
  EXPECT_EQ(measure_end_cost(true, "cuda:0", 0), plan::EndCost{});
}

TEST(EndCost, OfAProcessorThatComputesIsWhatItTells) {
  const plan::EndCost cost = measure_end_cost(true, "cpu", kMoreThanThereAre);
  EXPECT_GT(cost.sent, 0);
  EXPECT_GT(cost.received, 0);
  EXPECT_GT(cost.decode_add[0], 0) << "fp32 is added, too";
  EXPECT_EQ(cost.encode[0], 0);
  for (std::size_t codec = 1; codec < cost.encode.size(); ++codec) {
    EXPECT_GT(cost.encode[codec], 0);
    EXPECT_GT(cost.decode_add[codec], 0);
    EXPECT_GT(cost.encode_delta[codec], 0);
    EXPECT_GT(cost.decode_delta[codec], 0);
  }
  EXPECT_TRUE(plan::heard(plan::told(cost))) << "a coordinator believes it";
}

}  // namespace
}  // namespace motley::runtime
