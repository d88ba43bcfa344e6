#include "transport/tcp/send_queue.h"

#include <gtest/gtest.h>

#include <deque>

#include "base/philox.h"

namespace motley::transport {
namespace {

wire::Frame numbered(std::uint32_t number) {
  wire::Frame frame;
  frame.header.chunk = number;
  return frame;
}

TEST(SendQueue, LowerPriorityGoesFirst) {
  SendQueue queue;
  queue.push(numbered(1), Priority::background);
  queue.push(numbered(2), Priority::gradients);
  queue.push(numbered(3), Priority::control);
  queue.push(numbered(4), Priority::weights);
  for (const std::uint32_t expected : {3U, 4U, 2U, 1U}) EXPECT_EQ(queue.pop().header.chunk, expected);
  EXPECT_TRUE(queue.empty());
}

TEST(SendQueue, EachPriorityKeepsItsOrder) {
  Philox random(5);
  SendQueue queue;
  std::array<std::deque<std::uint32_t>, kPriorities> model;
  std::size_t count = 0;
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    // Long for a while, then short again.
    const bool grows = i / 2000 % 2 == 0;
    if (count == 0 || random.below(10) < (grows ? 7U : 3U)) {
      const auto priority = static_cast<std::size_t>(random.below(kPriorities));
      queue.push(numbered(i), static_cast<Priority>(priority));
      model[priority].push_back(i);
      ++count;
    } else {
      const auto line = std::find_if(model.begin(), model.end(), [](const auto& each) { return !each.empty(); });
      ASSERT_EQ(queue.pop().header.chunk, line->front());
      line->pop_front();
      --count;
    }
    ASSERT_EQ(queue.empty(), count == 0);
  }
  queue.clear();
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace motley::transport
