// What every transport must do, whatever is underneath.

#include <thread>

#include "fixture.h"

namespace motley::transport {
namespace {

using wire::FrameType;

std::string name_of(const ::testing::TestParamInfo<Kind>& info) {
  switch (info.param) {
    case Kind::inproc:
      return "inproc";
    case Kind::tcp_plain:
      return "tcp_plain";
    case Kind::tcp_tls:
      return "tcp_tls";
  }
  return "unknown";
}
INSTANTIATE_TEST_SUITE_P(All, TransportTest, ::testing::Values(Kind::inproc, Kind::tcp_plain, Kind::tcp_tls), name_of);

struct Joined {
  Ends ends;
  std::shared_ptr<Recorder> client = std::make_shared<Recorder>();
  std::shared_ptr<Recorder> server = std::make_shared<Recorder>();
  explicit Joined(World& world) : ends(world.connect()) {
    ends.client->start(client);
    ends.server->start(server);
  }
};

TEST_P(TransportTest, FramesArriveWholeAndInOrder) {
  Joined joined(world_);
  constexpr std::size_t kCount = 5000;
  for (std::size_t i = 0; i < kCount; ++i) {
    joined.ends.client->send(make_frame(FrameType::control, i, i % 700, static_cast<std::uint8_t>(i)),
                             Priority::control);
  }
  ASSERT_TRUE(joined.server->wait_frames(kCount));
  const auto frames = joined.server->frames();
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(frames[i].header.subject, i);
    ASSERT_TRUE(body_is(frames[i], i % 700, static_cast<std::uint8_t>(i)));
  }
}

TEST_P(TransportTest, LargeFramesBothWaysAtOnce) {
  Joined joined(world_);
  constexpr std::size_t kCount = 60;
  for (std::size_t i = 0; i < kCount; ++i) {
    joined.ends.client->send(make_frame(FrameType::gradient, i, 256 << 10, 1), Priority::gradients);
    joined.ends.server->send(make_frame(FrameType::weights, i, (256 << 10) - 7, 2), Priority::weights);
  }
  ASSERT_TRUE(joined.server->wait_frames(kCount));
  ASSERT_TRUE(joined.client->wait_frames(kCount));
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_TRUE(body_is(joined.server->frames()[i], 256 << 10, 1));
    ASSERT_TRUE(body_is(joined.client->frames()[i], (256 << 10) - 7, 2));
  }
}

TEST_P(TransportTest, CloseDeliversWhatIsQueuedAndTheFarewell) {
  Joined joined(world_);
  constexpr std::size_t kCount = 20;
  for (std::size_t i = 0; i < kCount; ++i) {
    joined.ends.client->send(make_frame(FrameType::gradient, i, 100000, 3), Priority::gradients);
  }
  joined.ends.client->send(make_frame(FrameType::control, 99, 40, 4), Priority::background);
  joined.ends.client->close();
  const auto there = joined.server->wait_closed();
  const auto here = joined.client->wait_closed();
  ASSERT_TRUE(there && here);
  EXPECT_EQ(there->code, ErrorCode::network);
  EXPECT_EQ(here->code, ErrorCode::network);
  const auto frames = joined.server->frames();
  ASSERT_EQ(frames.size(), kCount + 1);
  EXPECT_EQ(frames.back().header.subject, 99U);
}

}  // namespace
}  // namespace motley::transport
