#include "engine/head/bearing.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/philox.h"
#include "motley/layout.h"

namespace motley::engine {
namespace {

std::vector<float> drawn(std::size_t elements, std::uint64_t stream) {
  Philox random(3, stream);
  std::vector<float> values(elements);
  for (float& value : values) value = static_cast<float>(random.uniform() - 0.5);
  return values;
}

double square_between(const modes::Bearing& a, const modes::Bearing& b) {
  double square = 0;
  for (std::size_t i = 0; i < a.size(); ++i) square += (a[i] - b[i]) * (a[i] - b[i]);
  return square;
}

modes::Bearing bearing(const std::vector<float>& values) { return bearing_of(1, 0, codec::Encoded(values)); }

TEST(BearingOf, IsAsFarFromAnotherAsTheElements) {
  for (const std::size_t elements : {1280U, 4096U, 1000003U}) {
    const std::vector<float> one = drawn(elements, 1);
    std::vector<float> turned = one;
    for (float& value : turned) value = -value;
    const double norm = square_between(bearing(one), modes::Bearing{});
    EXPECT_GT(norm, 0);
    EXPECT_NEAR(square_between(bearing(one), bearing(turned)), 4 * norm, 1e-3 * norm);
    EXPECT_NEAR(square_between(bearing(one), bearing(drawn(elements, 2))), 2 * norm, norm);
  }
}

TEST(BearingOf, NothingIsNothing) { EXPECT_EQ(square_between(bearing({}), modes::Bearing{}), 0); }

TEST(PointingChunk, IsTheLastThatIsLargeEnough) {
  LayoutEntry first, second, bias;
  first.name = "first";
  second.name = "second";
  bias.name = "bias";
  first.shape = {128, 1024};
  second.shape = {64, 64};
  bias.shape = {4};
  const Result<Layout> layout = Layout::make({first, second, bias});
  ASSERT_TRUE(layout.ok());
  const Chunk& chunk = layout->chunks()[pointing_chunk(*layout)];
  EXPECT_GE(chunk.elements, 4096U);
  for (const Chunk& other : layout->chunks()) EXPECT_TRUE(other.elements < 4096U || other.offset <= chunk.offset);
}

}  // namespace
}  // namespace motley::engine
