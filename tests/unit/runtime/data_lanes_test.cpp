#include "runtime/data_lanes.h"

#include <gtest/gtest.h>

namespace motley::runtime {
namespace {

// Keeps what it is given until the test takes it.
class Pipe final : public transport::Connection {
 public:
  std::vector<std::pair<wire::FrameHeader, transport::Priority>> frames;
  std::size_t queued = 0;
  std::uint64_t received = 0;
  bool closed = false;
  void start(std::shared_ptr<transport::Receiver>) override {}
  void send(wire::Frame frame, transport::Priority priority) override {
    queued += frame.header.length;
    frames.emplace_back(frame.header, priority);
  }
  void close() override { closed = true; }
  void set_reading(bool) override {}
  std::size_t queued_bytes() const override { return queued; }
  transport::Traffic traffic() const override { return {.received_bytes = received}; }
  const transport::PeerIdentity& peer() const override { return peer_; }
  void mark_proven() override {}

 private:
  transport::PeerIdentity peer_;
};

wire::Frame frame_of(wire::FrameType type, std::uint32_t chunk = 0, std::uint32_t bytes = 1) {
  wire::Frame frame;
  frame.header.type = type;
  frame.header.chunk = chunk;
  frame.header.length = bytes;
  return frame;
}

wire::Frame numbered(std::uint32_t number) {
  wire::Frame frame = frame_of(wire::FrameType::weights, number);
  frame.header.order = wire::kOrdered | number;
  return frame;
}

struct Three {
  std::vector<std::shared_ptr<Pipe>> pipes;
  DataLanes lanes{3};
  Three() {
    for (std::size_t i = 0; i < 3; ++i) lanes.add(i, pipes.emplace_back(std::make_shared<Pipe>()));
  }
  std::vector<std::size_t> counts() const {
    std::vector<std::size_t> counts;
    for (const auto& pipe : pipes) counts.push_back(pipe->frames.size());
    return counts;
  }
};

TEST(DataConnections, OneForEachCoreThatTheLinkNeeds) {
  const auto wanted = [](std::uint32_t mbit_per_s, bool encrypted, unsigned cores) {
    return data_connections({transport::InterfaceKind::cable, mbit_per_s, false, "eth0"}, encrypted, cores);
  };
  for (const std::uint32_t home : {0U, 100U, 1000U, 2500U}) EXPECT_EQ(wanted(home, true, 16), 1U);
  EXPECT_EQ(wanted(5000, true, 16), 2U);
  EXPECT_EQ(wanted(10000, true, 16), 3U);
  EXPECT_EQ(wanted(10000, false, 16), 2U);
  EXPECT_EQ(wanted(100000, true, 64), 4U);
  EXPECT_EQ(wanted(10000, true, 8), 2U);
  EXPECT_EQ(wanted(10000, true, 2), 1U);
  EXPECT_EQ(wanted(10000, true, 0), 1U);  // not known
}

TEST(DataLanes, OneConnectionNeedsNoOrder) {
  const auto pipe = std::make_shared<Pipe>();
  DataLanes lanes(1);
  EXPECT_FALSE(lanes.complete());
  lanes.add(0, pipe);
  ASSERT_TRUE(lanes.complete());
  lanes.send(frame_of(wire::FrameType::weights), engine::Lane::weights);
  EXPECT_EQ(pipe->frames.front().first.order, 0U);
  EXPECT_EQ(pipe->frames.front().second, transport::Priority::weights);
}

TEST(DataLanes, AFrameGoesWhereTheLeastIsQueued) {
  Three three;
  for (std::uint32_t i = 0; i < 9; ++i)
    three.lanes.send(frame_of(wire::FrameType::gradient, i), engine::Lane::gradients);
  EXPECT_EQ(three.counts(), (std::vector<std::size_t>{3, 3, 3}));
  three.pipes[0]->queued = three.pipes[2]->queued = 100;
  for (std::uint32_t i = 0; i < 5; ++i)
    three.lanes.send(frame_of(wire::FrameType::gradient, i), engine::Lane::gradients);
  EXPECT_EQ(three.counts(), (std::vector<std::size_t>{3, 8, 3}));
}

TEST(DataLanes, CountsWhatCameOverAllOfThem) {
  Three three;
  three.pipes[0]->received = 5;
  three.pipes[2]->received = 7;
  EXPECT_EQ(three.lanes.received_bytes(), 12U);
  EXPECT_EQ(DataLanes().received_bytes(), 0U);
  EXPECT_EQ(DataLanes(2).received_bytes(), 0U);
}

TEST(DataLanes, OnlyWeightsHaveAnOrderAndTheBackgroundHasOneConnection) {
  Three three;
  three.lanes.send(frame_of(wire::FrameType::gradient), engine::Lane::gradients);
  for (std::uint32_t i = 0; i < 4; ++i) three.lanes.send(frame_of(wire::FrameType::weights, i), engine::Lane::weights);
  for (int i = 0; i < 5; ++i) three.lanes.send(frame_of(wire::FrameType::weights, 99), engine::Lane::background);
  std::size_t in_background = 0;
  for (const auto& pipe : three.pipes) {
    for (const auto& [header, priority] : pipe->frames) {
      const bool ordered = priority == transport::Priority::weights;
      EXPECT_EQ(header.order, ordered ? wire::kOrdered | header.chunk : 0U);
      if (priority == transport::Priority::background) in_background += pipe == three.pipes[0] ? 1 : 100;
    }
  }
  EXPECT_EQ(in_background, 5U);
}

TEST(DataLanes, WaitsForEachConnectionOnce) {
  DataLanes lanes;
  EXPECT_FALSE(lanes.complete());
  EXPECT_TRUE(lanes.waits_for(7, 8));
  EXPECT_FALSE(lanes.waits_for(0, 9));
  EXPECT_FALSE(lanes.waits_for(2, 2));
  EXPECT_FALSE(lanes.waits_for(0, 0));
  lanes = DataLanes(2);
  const auto pipe = std::make_shared<Pipe>();
  lanes.add(1, pipe);
  EXPECT_FALSE(lanes.complete());
  EXPECT_FALSE(lanes.waits_for(1, 2));
  EXPECT_FALSE(lanes.waits_for(0, 3));
  EXPECT_TRUE(lanes.waits_for(0, 2));
  lanes.close();
  EXPECT_TRUE(pipe->closed);
}

TEST(LaneOrder, GivesEveryFrameInItsTurn) {
  constexpr std::uint32_t kFrames = 20000, kSkew = 4000, kStride = 1237;  // without a common divisor
  LaneOrder order;
  std::uint32_t given = 0;
  for (std::uint32_t i = 0; i < kFrames; ++i) {
    const std::uint32_t first = i / kSkew * kSkew;
    ASSERT_TRUE(order.hold(numbered(first + i * kStride % kSkew)));
    while (const auto frame = order.next()) ASSERT_EQ(frame->header.chunk, given++);
  }
  EXPECT_EQ(given, kFrames);
}

TEST(LaneOrder, RefusesWhatCameBeforeAndWhatIsFarAhead) {
  LaneOrder order;
  EXPECT_FALSE(order.next());
  EXPECT_TRUE(order.hold(numbered(1)));
  EXPECT_FALSE(order.hold(numbered(1)));
  EXPECT_FALSE(order.next());
  EXPECT_TRUE(order.hold(numbered(0)));
  EXPECT_TRUE(order.next());
  EXPECT_TRUE(order.next());
  EXPECT_FALSE(order.hold(numbered(0)));
  EXPECT_FALSE(order.hold(numbered(4098)));
  EXPECT_TRUE(order.hold(numbered(4097)));
  EXPECT_FALSE(order.next());
}

}  // namespace
}  // namespace motley::runtime
