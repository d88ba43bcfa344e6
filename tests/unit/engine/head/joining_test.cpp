// Joining, refusals, and what breaks the protocol.

#include <functional>

#include "fixture.h"
#include "wire/limits.h"

namespace motley::engine {
namespace {

class CoordinatorJoining : public CoordinatorTest {
 protected:
  void refuse(const wire::Ready& offer, const std::string& code, const std::string& found) {
    Peer& peer = open(1);
    say(peer, offer);
    ASSERT_EQ(output.closed.count(1), 1u);
    const wire::Bye bye = output.closed.at(1);
    EXPECT_EQ(bye.code, code);
    EXPECT_NE(bye.found.find(found), std::string::npos) << bye.found;
    EXPECT_FALSE(bye.expected.empty());
    EXPECT_FALSE(bye.hint.empty());
    EXPECT_EQ(peer.all<wire::Bye>().size(), 1u);
    ASSERT_EQ(output.changes.size(), 1u);
    EXPECT_EQ(output.changes[0].event, Membership::refused);
    EXPECT_NE(output.changes[0].reason.find(found), std::string::npos) << output.changes[0].reason;
    EXPECT_EQ(coordinator->workers(), 0u);
  }

  [[nodiscard]] wire::Ready offer(const Layout& model) const {
    const auto entries = model.entries();
    return {{entries.begin(), entries.end()}, kTrain, kTest};
  }
};

TEST_F(CoordinatorJoining, FollowsTheSession) {
  options.config = "[model]\n";
  const std::vector<std::byte> file(600 << 10, std::byte{7});
  options.script_files = SharedBytes::copy_of(file);
  options.script_sha256 = "00000000000000ff0000";
  make();
  wire::Hello hello;
  hello.name = "w1";
  hello.features = {kFetch};
  coordinator->session_opened(1, hello, Locality::network, now);
  const auto sent = output.sent[1];
  ASSERT_EQ(sent.size(), 4u) << "RunSpec and three segments";
  EXPECT_EQ(sent[0].lane, Lane::control);
  std::size_t bytes = 0;
  for (std::size_t i = 1; i < sent.size(); ++i) {
    EXPECT_EQ(sent[i].frame.header.type, wire::FrameType::blob);
    EXPECT_EQ(sent[i].frame.header.offset, bytes);
    EXPECT_EQ(sent[i].frame.header.total, file.size());
    EXPECT_EQ(sent[i].frame.header.subject, 0xFFu);
    EXPECT_TRUE(wire::verify_body(sent[i].frame.header, sent[i].frame.body.bytes()).ok());
    bytes += sent[i].frame.body.size();
  }
  EXPECT_EQ(bytes, file.size());
  Peer& peer = peers[1];
  peer.session = 1;
  collect();
  ASSERT_EQ(peer.all<wire::RunSpec>().size(), 1u);
  EXPECT_EQ(peer.all<wire::RunSpec>()[0].script_bytes, file.size());
  EXPECT_EQ(coordinator->waiting_for(), "waiting for 1 worker to join (1 getting ready)");

  ready(peer);
  ASSERT_EQ(peer.all<wire::Admitted>().size(), 1u);
  EXPECT_EQ(peer.all<wire::Admitted>()[0].worker, 1u);
  EXPECT_EQ(peer.fence, (std::uint64_t{3} << 32 | 1));
  EXPECT_EQ(peer.weights[0].size(), layout.chunks().size());
  EXPECT_TRUE(peer.grants.empty());
  EXPECT_EQ(coordinator->workers(), 1u);

  synced(peer);
  EXPECT_EQ(peer.all<wire::PassOpened>().size(), 1u);
  ASSERT_EQ(peer.grants.size(), 1u);
  EXPECT_EQ(peer.grants[0].count, 16u);
  EXPECT_EQ(coordinator->waiting_for(), "waiting for w1 (0 of 16 samples)");
}

TEST_F(CoordinatorJoining, WeightsGoInTheBackgroundExceptInTheSameProcessAndWithChecksumsByNetworkAlone) {
  make();
  for (const Locality locality : {Locality::network, Locality::process, Locality::machine}) {
    const SessionId session = 1 + static_cast<SessionId>(locality);
    Peer& peer = open(session, {}, locality);
    int frames = 0;
    const auto entries = layout.entries();
    coordinator->session_frame(session,
                               wire::seal(header(peer, wire::FrameType::control),
                                          wire::encode(wire::Ready{{entries.begin(), entries.end()}, kTrain, kTest})),
                               now);
    for (const auto& [frame, lane] : output.sent[session]) {
      if (frame.header.type == wire::FrameType::weights) {
        EXPECT_EQ(lane, locality == Locality::process ? Lane::weights : Lane::background);
        EXPECT_EQ(wire::verify_body(frame.header, frame.body.bytes()).ok(), locality == Locality::network);
        ++frames;
      }
    }
    EXPECT_GT(frames, 0);
    collect();
  }
}

TEST_F(CoordinatorJoining, RefusesAnotherModel) {
  make();
  refuse(offer(test_layout(41000)), "model", "41000");
}

TEST_F(CoordinatorJoining, RefusesOtherData) {
  make();
  wire::Ready other = offer(layout);
  other.train_fingerprint = "60001x28x28";
  refuse(other, "data", "60001x28x28");
}

TEST_F(CoordinatorJoining, RefusesOtherTestDataWhereItIsUsed) {
  options.test_samples = 10;
  make();
  wire::Ready other = offer(layout);
  other.test_fingerprint = "10001x28x28";
  refuse(other, "data", "10001x28x28");
}

TEST_F(CoordinatorJoining, RefusesAnotherScript) {
  options.script = "loss()\t#1\nw\t=0.5\n";
  make();
  wire::Ready other = offer(layout);
  other.script = "loss()\t#1\nw\t=0.3\n";
  refuse(other, "model", "w (0.3 instead of 0.5)");
}

TEST_F(CoordinatorJoining, TakesWhoSaysNothingOfItsScript) {
  options.script = "loss()\t#1\n";
  make();
  Peer& peer = open(1);
  say(peer, offer(layout));
  EXPECT_EQ(coordinator->workers(), 1u);
}

TEST_F(CoordinatorJoining, ASecondReadyEndsTheSession) {
  make();
  Peer& peer = join(1);
  say(peer, offer(layout));
  ASSERT_EQ(output.closed.count(1), 1u);
  EXPECT_EQ(output.closed.at(1).code, "protocol");
  EXPECT_EQ(output.closed.at(1).expected, "one Ready of a session");
}

TEST_F(CoordinatorJoining, ALongMessageOfAMemberEndsItsSessionUnread) {
  make();
  Peer& peer = join(1);
  wire::Ready longest = offer(layout);
  LayoutEntry entry = longest.layout.front();
  entry.name = std::string(100, 'n');
  longest.layout.assign(60000, entry);
  say(peer, longest);
  ASSERT_EQ(output.closed.count(1), 1u);
  EXPECT_EQ(output.closed.at(1).code, "protocol");
  EXPECT_NE(output.closed.at(1).expected.find("bytes of control message"), std::string::npos)
      << output.closed.at(1).expected;
}

TEST_F(CoordinatorJoining, TakesOtherTestDataWhereItIsNot) {
  make();
  wire::Ready other = offer(layout);
  other.test_fingerprint = "10001x28x28";
  Peer& peer = open(1);
  say(peer, other);
  EXPECT_EQ(coordinator->workers(), 1u);
}

TEST_F(CoordinatorJoining, AWorkerThatCannotPrepareSaysWhy) {
  make();
  Peer& peer = open(1);
  say(peer, wire::Bye{"data", {}, "no such file: x.npy", {}});
  ASSERT_EQ(output.changes.size(), 1u);
  EXPECT_EQ(output.changes[0].event, Membership::refused);
  EXPECT_NE(output.changes[0].reason.find("x.npy"), std::string::npos);
  EXPECT_TRUE(peer.all<wire::Bye>().empty());
  EXPECT_EQ(output.closed.count(1), 1u);
}

TEST_F(CoordinatorJoining, LoadingMayTakeLongButNotForEver) {
  make();
  open(1);
  pass_time(std::chrono::seconds(299));
  EXPECT_EQ(output.closed.count(1), 0u);
  pass_time(std::chrono::seconds(2));
  EXPECT_EQ(output.closed.at(1).code, "lost");
  EXPECT_GT(peers[1].all<wire::Heartbeat>().size(), 500u);
}

TEST_F(CoordinatorJoining, TooManySessionsAreTurnedAway) {
  make();
  for (SessionId session = 1; session <= wire::kSessionsMax; ++session) open(session);
  open(999);
  EXPECT_EQ(output.closed.size(), 1u);
  EXPECT_EQ(output.closed.at(999).code, "full");
}

TEST_F(CoordinatorJoining, WhoHasShownNothingMakesRoomForWhoComes) {
  make();
  join(1);
  for (SessionId session = 2; session <= wire::kSessionsMax; ++session) open(session);
  pass_time(std::chrono::seconds(9), {&peers[1]});
  EXPECT_FALSE(coordinator->has_room(now));
  pass_time(std::chrono::seconds(1), {&peers[1]});
  EXPECT_TRUE(coordinator->has_room(now));
  open(999);
  EXPECT_EQ(output.closed.count(999), 0u);
  ASSERT_EQ(output.closed.size(), 1u) << "one place is wanted, and one is given up";
  EXPECT_EQ(output.closed.at(2).code, "lost") << "it may come again";
  EXPECT_NE(output.closed.at(2).found.find("somebody else wanted its place"), std::string::npos);
  open(1000);
  EXPECT_EQ(output.closed.count(1), 0u) << "who works keeps its place";
}

// --- the protocol ---

struct Fault {
  const char* name;
  std::function<void(wire::FrameHeader&)> damage;
  const char* found;
};

class CoordinatorProtocol : public CoordinatorTest, public testing::WithParamInterface<Fault> {};

TEST_P(CoordinatorProtocol, ABadHeaderClosesTheSession) {
  make_with({1, 1});
  Peer& bad = join(1);
  join(2);
  const wire::Grant grant = begun(bad);
  wire::Frame frame = gradient_frame(bad, grant, 1);
  GetParam().damage(frame.header);
  deliver(bad, frame);
  ASSERT_EQ(output.closed.count(1), 1u);
  EXPECT_EQ(output.closed.at(1).code, "protocol");
  EXPECT_NE(output.closed.at(1).found.find(GetParam().found), std::string::npos) << output.closed.at(1).found;
  EXPECT_EQ(events_of("w1").back(), Membership::lost);
  run_exact(4);
}

INSTANTIATE_TEST_SUITE_P(
    Headers, CoordinatorProtocol,
    testing::Values(Fault{"run", [](auto& h) { h.run = 5; }, "run 5"},
                    Fault{"version", [](auto& h) { h.version = 9; }, "version 9"},
                    Fault{"chunk", [](auto& h) { h.chunk = 4000; }, "chunk 4000"},
                    Fault{"offset", [](auto& h) { h.offset = 8; }, "bytes 8 +"},
                    Fault{"unaligned", [](auto& h) { h.offset = 2; }, "bytes 2 +"},
                    Fault{"overflow", [](auto& h) { h.offset = 0xFFFFFFF0U; }, "bytes 4294967280 +"},
                    Fault{"length", [](auto& h) { h.length -= 4; }, "with a body of"},
                    Fault{"total", [](auto& h) { h.total += 4; }, "65540"},
                    Fault{"codec", [](auto& h) { h.codec = wire::CodecId{2}; }, "one in int8"},
                    Fault{"kind", [](auto& h) { h.type = wire::FrameType::statistic; }, "statistics in chunk 1"},
                    Fault{"type", [](auto& h) { h.type = wire::FrameType::weights; }, "type 2"}),
    [](const auto& param_info) { return param_info.param.name; });

TEST_F(CoordinatorTest, WhatAWorkerSentBeforeItKnewTheRunMayComeAfterItsAdmission) {
  make();
  Peer& peer = join(1);
  wire::FrameHeader early;
  early.type = wire::FrameType::control;
  const wire::Frame heartbeat = wire::seal(early, wire::encode(wire::Heartbeat{}));
  deliver(peer, heartbeat);
  EXPECT_EQ(output.closed.count(1), 0u);

  early.fence = peer.fence;
  deliver(peer, wire::seal(early, wire::encode(wire::Heartbeat{})));
  EXPECT_EQ(output.closed.at(1).code, "protocol");
}

TEST_F(CoordinatorTest, LateFramesAreDroppedInSilence) {
  make_with({1, 1});
  Peer& a = join(1);
  Peer& b = join(2);
  const wire::Grant old = take(a);
  compute(a, old);
  work(b);
  ASSERT_EQ(coordinator->server().version(), 1u);
  compute(a, old);  // the whole of it once more
  wire::Grant unknown = old;
  unknown.lease = 12345;
  compute(a, unknown);
  wire::Grant foreign = b.grants.at(0);  // somebody else's lease
  compute(a, foreign);
  EXPECT_TRUE(output.closed.empty());
  run_exact(4);
}

TEST_F(CoordinatorTest, FramesOfAnotherFenceAreDroppedInSilence) {
  make();
  Peer& a = join(1);
  const wire::Grant grant = a.grants.at(0);
  wire::Frame frame = gradient_frame(a, grant, 0);
  frame.header.fence ^= 1;
  deliver(a, frame);
  EXPECT_TRUE(output.closed.empty());
  run_exact(4);
}

TEST_F(CoordinatorTest, GarbageInAControlFrameClosesTheSession) {
  make();
  Peer& a = join(1);
  const std::vector<std::byte> garbage(40, std::byte{0xFF});
  deliver(a, wire::seal(header(a, wire::FrameType::control), SharedBytes::copy_of(garbage)));
  EXPECT_EQ(output.closed.at(1).code, "protocol");
}

TEST_F(CoordinatorTest, AWorkerMayNotPlayCoordinator) {
  make();
  Peer& a = join(1);
  say(a, wire::Grant{});
  EXPECT_EQ(output.closed.at(1).code, "protocol");
  EXPECT_EQ(output.closed.at(1).found, "Grant");
}

TEST_F(CoordinatorTest, ABeginBeyondTheLeaseClosesTheSession) {
  make();
  Peer& a = join(1);
  wire::Grant grant = take(a);
  grant.count += 1;
  begin(a, grant);
  EXPECT_EQ(output.closed.at(1).code, "protocol");
}

TEST_F(CoordinatorTest, HeartbeatsEchoWhatWasHeard) {
  make();
  Peer& a = join(1);
  say(a, wire::Heartbeat{4711, 0});
  pass_time(ms(600), {});
  const auto beats = a.all<wire::Heartbeat>();
  ASSERT_FALSE(beats.empty());
  EXPECT_EQ(beats.back().echo_ns, 4711u);
}

}  // namespace
}  // namespace motley::engine
