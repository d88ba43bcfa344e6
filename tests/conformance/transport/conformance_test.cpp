// What every transport must do, whatever is underneath.

#include <algorithm>
#include <thread>

#include "fixture.h"
#include "wire/limits.h"

namespace motley::transport {
namespace {

using wire::FrameType;

std::string name_of(const ::testing::TestParamInfo<Kind>& info) {
  switch (info.param) {
    case Kind::inproc:
      return "inproc";
    case Kind::local:
      return "local";
    case Kind::tcp_plain:
      return "tcp_plain";
    case Kind::tcp_tls:
      return "tcp_tls";
  }
  return "unknown";
}
INSTANTIATE_TEST_SUITE_P(All, TransportTest, ::testing::Values(Kind::inproc, Kind::tcp_plain, Kind::tcp_tls), name_of);
#ifdef __linux__
INSTANTIATE_TEST_SUITE_P(OneMachine, TransportTest, ::testing::Values(Kind::local), name_of);
#endif

/// Those that have an object which can end.
class SocketTest : public TransportTest {};
INSTANTIATE_TEST_SUITE_P(All, SocketTest, ::testing::Values(Kind::tcp_plain, Kind::tcp_tls), name_of);
#ifdef __linux__
INSTANTIATE_TEST_SUITE_P(OneMachine, SocketTest, ::testing::Values(Kind::local), name_of);
#endif

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

TEST_P(TransportTest, BodiesNeedAChecksumOnPlainTcpAlone) {
  Joined joined(world_);
  wire::Frame frame = make_frame(FrameType::gradient, 1, 1000, 3);
  frame.header.body_crc = 0;
  joined.ends.client->send(std::move(frame), Priority::gradients);
  if (GetParam() == Kind::tcp_plain) {
    const std::optional<Error> error = joined.server->wait_closed();
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, ErrorCode::protocol);
  } else {
    ASSERT_TRUE(joined.server->wait_frames(1));
    EXPECT_TRUE(body_is(joined.server->frames()[0], 1000, 3));
  }
}

TEST_P(TransportTest, LargeFramesBothWaysAtOnce) {
  Joined joined(world_);
  constexpr std::size_t kCount = 60;
  const auto length = [](std::size_t i) { return i % 20 == 7 ? wire::kBodyBytesMax : std::size_t{256} << 10; };
  for (std::size_t i = 0; i < kCount; ++i) {
    joined.ends.client->send(make_frame(FrameType::gradient, i, length(i), 1), Priority::gradients);
    joined.ends.server->send(make_frame(FrameType::weights, i, length(i) - 7, 2), Priority::weights);
  }
  ASSERT_TRUE(joined.server->wait_frames(kCount));
  ASSERT_TRUE(joined.client->wait_frames(kCount));
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_TRUE(body_is(joined.server->frames()[i], length(i), 1));
    ASSERT_TRUE(body_is(joined.client->frames()[i], length(i) - 7, 2));
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

TEST_P(TransportTest, FarewellIsNotLostInCrossTraffic) {
  // What one side has not read when it closes must not destroy what it has sent.
  for (int round = 0; round < 30; ++round) {
    Joined joined(world_);
    for (std::uint64_t i = 0; i < 20; ++i) {
      joined.ends.server->send(make_frame(FrameType::weights, i, 50000), Priority::weights);
    }
    joined.ends.client->send(make_frame(FrameType::control, 77, 30), Priority::control);
    joined.ends.client->close();
    joined.ends.client.reset();
    ASSERT_TRUE(joined.server->wait_closed());
    const auto frames = joined.server->frames();
    ASSERT_EQ(frames.size(), 1U) << "round " << round;
    EXPECT_EQ(frames[0].header.subject, 77U);
  }
}

TEST_P(TransportTest, UrgentFramesOvertake) {
  const Ends ends = world_.connect();
  const auto sink = std::make_shared<Recorder>();
  const auto server = std::make_shared<Recorder>();
  ends.client->start(sink);
  // The server does not read yet: all but what the kernel takes waits in the queues of the client. When it takes it is
  // not known, so the urgent ones may come anywhere before the last of the bulk.
  const wire::Frame bulk = make_frame(FrameType::gradient, 1, 256 << 10);
  constexpr std::size_t kBulk = 200;
  for (std::size_t i = 0; i < kBulk; ++i) ends.client->send(bulk, Priority::gradients);
  ends.client->send(make_frame(FrameType::weights, 2, 100), Priority::weights);
  ends.client->send(make_frame(FrameType::control, 3, 100), Priority::control);
  ends.client->send(make_frame(FrameType::blob, 4, 100), Priority::background);
  ends.server->start(server);
  ASSERT_TRUE(server->wait_frames(kBulk + 3));
  std::vector<std::uint64_t> order;
  for (const auto& frame : server->frames()) order.push_back(frame.header.subject);
  EXPECT_EQ(order.back(), 4U);
  const auto last_bulk = std::find(order.rbegin(), order.rend(), 1U).base();
  EXPECT_NE(std::find(order.begin(), last_bulk, 2U), last_bulk);
  EXPECT_NE(std::find(order.begin(), last_bulk, 3U), last_bulk);
}

TEST_P(TransportTest, FramesBeforeStartAreKept) {
  const Ends ends = world_.connect();
  for (std::uint64_t i = 0; i < 10; ++i) ends.client->send(make_frame(FrameType::control, i, 10), Priority::control);
  ends.client->close();
  const auto server = std::make_shared<Recorder>();
  ends.server->start(server);
  ASSERT_TRUE(server->wait_closed());
  EXPECT_EQ(server->frames().size(), 10U);
}

TEST_P(TransportTest, DroppedHandleClosesBothEnds) {
  Joined joined(world_);
  joined.ends.client->send(make_frame(FrameType::control, 5, 10), Priority::control);
  joined.ends.client.reset();
  const auto error = joined.server->wait_closed();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::network);
  EXPECT_FALSE(error->message.empty());
  EXPECT_EQ(joined.server->frames().size(), 1U);
  EXPECT_TRUE(joined.client->wait_closed());
}

TEST_P(TransportTest, SendAndCloseAfterCloseDoNothing) {
  Joined joined(world_);
  joined.ends.client->close();
  joined.ends.client->close();
  joined.ends.client->send(make_frame(FrameType::control, 1, 10), Priority::control);
  ASSERT_TRUE(joined.client->wait_closed());
  ASSERT_TRUE(joined.server->wait_closed());
  joined.ends.client->close();
  joined.ends.client->send(make_frame(FrameType::control, 1, 10), Priority::control);
  joined.ends.server->send(make_frame(FrameType::control, 1, 10), Priority::control);
  joined.ends.server->close();
  EXPECT_TRUE(joined.server->frames().empty());
  EXPECT_TRUE(joined.client->frames().empty());
  EXPECT_EQ(joined.ends.client->queued_bytes(), 0U);
  EXPECT_EQ(joined.ends.server->queued_bytes(), 0U);
}

TEST_P(TransportTest, ClosedBeforeStartIsReportedAtStart) {
  const Ends ends = world_.connect();
  ends.client->close();
  const auto client = std::make_shared<Recorder>();
  ends.client->start(client);
  EXPECT_TRUE(client->wait_closed());
  EXPECT_TRUE(client->frames().empty());
}

TEST_P(TransportTest, BothEndsMayCloseAtOnce) {
  for (int round = 0; round < 20; ++round) {
    Joined joined(world_);
    joined.ends.client->send(make_frame(FrameType::control, 1, 1000), Priority::control);
    joined.ends.server->send(make_frame(FrameType::control, 1, 1000), Priority::control);
    std::thread other([&] { joined.ends.server->close(); });
    joined.ends.client->close();
    other.join();
    ASSERT_TRUE(joined.client->wait_closed());
    ASSERT_TRUE(joined.server->wait_closed());
  }
}

TEST_P(TransportTest, ManyThreadsMaySend) {
  Joined joined(world_);
  constexpr std::uint64_t kThreads = 8, kEach = 400;
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < kEach; ++i) {
        joined.ends.client->send(make_frame(FrameType::control, t << 32 | i, (i * 37) % 3000), Priority::control);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  ASSERT_TRUE(joined.server->wait_frames(kThreads * kEach));
  std::array<std::uint64_t, kThreads> next{};
  for (const auto& frame : joined.server->frames()) {
    const std::uint64_t t = frame.header.subject >> 32;
    ASSERT_LT(t, kThreads);
    ASSERT_EQ(frame.header.subject & 0xFFFFFFFF, next[t]++);
  }
}

TEST_P(TransportTest, TrafficIsCounted) {
  Joined joined(world_);
  joined.ends.client->send(make_frame(FrameType::control, 1, 1000), Priority::control);
  joined.ends.client->send(make_frame(FrameType::gradient, 2, 200000), Priority::gradients);
  joined.ends.client->send(make_frame(FrameType::control, 3, 0), Priority::gradients);
  joined.ends.client->close();
  ASSERT_TRUE(joined.server->wait_closed());
  ASSERT_TRUE(joined.client->wait_closed());
  const std::uint64_t expected = 3 * wire::kHeaderBytes + 201000;
  EXPECT_EQ(joined.ends.client->traffic().sent_bytes, expected);
  EXPECT_EQ(joined.ends.server->traffic().received_bytes, expected);
  EXPECT_EQ(joined.ends.client->traffic().received_bytes, 0U);
  EXPECT_EQ(joined.ends.client->queued_bytes(), 0U);
}

TEST_P(TransportTest, ControlFrameMayBeLong) {
  Joined joined(world_);
  joined.ends.client->send(make_frame(FrameType::control, 1, 8 << 20, 9), Priority::control);
  ASSERT_TRUE(joined.server->wait_frames(1));
  EXPECT_TRUE(body_is(joined.server->frames()[0], 8 << 20, 9));
}

TEST_P(TransportTest, ReceiverIsReleasedAfterClose) {
  const Ends ends = world_.connect();
  auto receiver = std::make_shared<Recorder>();
  auto gone = receiver->gone();
  ends.client->start(std::move(receiver));
  ends.server->close();
  EXPECT_EQ(gone.wait_for(kPatience), std::future_status::ready);
}

TEST_P(TransportTest, IdentityIsEqualOnBothSides) {
  const Ends ends = world_.connect();
  const PeerIdentity& client = ends.client->peer();
  const PeerIdentity& server = ends.server->peer();
  EXPECT_FALSE(client.address.empty());
  EXPECT_EQ(client.exporter, server.exporter);
  if (GetParam() != Kind::tcp_tls) {
    EXPECT_FALSE(client.encrypted || server.encrypted);
    return;
  }
  EXPECT_TRUE(client.encrypted && server.encrypted);
  EXPECT_EQ(client.spki, world_.server_identity()->spki);
  EXPECT_EQ(server.spki, world_.client_identity()->spki);
  EXPECT_NE(client.exporter, Digest{});
  EXPECT_NE(world_.connect().client->peer().exporter, client.exporter);
}

TEST_P(SocketTest, FarewellSurvivesTheEndOfTheTransport) {
  Joined joined(world_);
  joined.ends.client->send(make_frame(FrameType::control, 7, 10), Priority::control);
  world_.stop_client();
  EXPECT_TRUE(joined.client->wait_closed());
  ASSERT_TRUE(joined.server->wait_closed());
  EXPECT_EQ(joined.server->frames().size(), 1U);
  joined.ends.client->send(make_frame(FrameType::control, 8, 10), Priority::control);  // harmless
  joined.ends.client->close();
}

}  // namespace
}  // namespace motley::transport
