// Weights from worker to worker, as the coordinator has it: who follows whom, what is sent by its hash and what whole.

#include <gmock/gmock.h>

#include "base/xxh64.h"
#include "coordinator_fixture.h"
#include "engine/coordinator_chain.h"

namespace motley::engine {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

wire::BodyHash first_bytes(std::span<const std::byte> bytes) {
  wire::BodyHash hash{};
  hash[0] = static_cast<std::uint8_t>(xxh64(bytes));
  hash[1] = static_cast<std::uint8_t>(xxh64(bytes) >> 8);
  return hash;
}

class CoordinatorChain : public CoordinatorTest {
 protected:
  CoordinatorChain() {
    options.steps = 12;
    options.chain = CoordinatorOptions::Chain::weights;
    options.hasher = first_bytes;
    features = {kChain};
  }
  void start(std::size_t workers) {
    make_with(std::vector<double>(workers, 1));
    for (SessionId id = 1; id <= workers; ++id) join(id);
  }
  using CoordinatorTest::join;
  /// Its first weights take so long to reach it.
  void join(SessionId id, Duration first_weights) {
    Peer& peer = open(id, {}, Reach::network);
    ready(peer);
    now += first_weights;
    synced(peer);
  }
  void step() {
    const std::size_t before = output.steps.size();
    for (auto& [session, peer] : peers)
      while (!peer.grants.empty() && output.steps.size() == before && !output.closed.contains(session)) work(peer);
    ASSERT_EQ(output.steps.size(), before + 1);
  }
  /// All that were brought together find each other.
  void link() {
    for (auto& [id, peer] : peers)
      for (const wire::Guest& guest : peer.all<wire::Guest>())
        say(peer, wire::Source{.id = guest.id, .port = 9, .addresses = {"10.0.0.1"}, .secret = {}, .spki = {}});
    for (auto& [id, peer] : peers)
      if (const auto sources = peer.all<wire::Source>(); !sources.empty()) say(peer, wire::Follows{sources.back().id});
  }
  /// The frames by which a worker got a version.
  std::vector<wire::Frame> frames(SessionId id, std::uint64_t version) {
    std::vector<wire::Frame> found;
    for (const wire::Frame& frame : peers[id].frames)
      if (frame.header.version == version) found.push_back(frame);
    return found;
  }
  std::vector<ChunkId> by_hash(SessionId id, std::uint64_t version) {
    std::vector<ChunkId> found;
    for (const wire::Frame& frame : frames(id, version))
      if ((frame.header.flags & wire::kByHash) != 0) found.push_back(frame.header.chunk);
    return found;
  }
  std::vector<ChunkId> handed_on(SessionId id, std::uint64_t version) {
    std::vector<ChunkId> found;
    for (const wire::Frame& frame : frames(id, version))
      if ((frame.header.flags & wire::kHandOn) != 0) found.push_back(frame.header.chunk);
    return found;
  }
};

TEST_F(CoordinatorChain, TheHeadSendsOnceWhatAllGet) {
  start(3);
  step();
  EXPECT_THAT(output.introduced, ElementsAre(Pair(1, 2), Pair(2, 3)));
  step();
  EXPECT_THAT(by_hash(2, 2), IsEmpty()) << "nobody said that the other is there";
  link();
  EXPECT_EQ(peers[2].all<wire::Source>().at(0).secret, peers[1].all<wire::Guest>().at(0).secret);
  EXPECT_EQ(peers[2].all<wire::Source>().at(0).spki, std::vector<std::uint8_t>(32, 6)) << "as the runtime knows it";
  EXPECT_EQ(peers[2].all<wire::Source>().at(0).hops, 0U);
  EXPECT_EQ(peers[3].all<wire::Source>().at(0).hops, 1U);
  step();
  const std::vector<ChunkId> large{0, 1, 2};
  EXPECT_THAT(by_hash(1, 3), IsEmpty());
  EXPECT_THAT(handed_on(1, 3), testing::UnorderedElementsAreArray(large));
  EXPECT_THAT(by_hash(2, 3), testing::UnorderedElementsAreArray(large));
  EXPECT_THAT(handed_on(2, 3), testing::UnorderedElementsAreArray(large));
  EXPECT_THAT(by_hash(3, 3), testing::UnorderedElementsAreArray(large));
  EXPECT_THAT(handed_on(3, 3), IsEmpty());
  for (const wire::Frame& whole : frames(1, 3)) {
    for (const wire::Frame& hash : frames(3, 3)) {
      if (hash.header.chunk != whole.header.chunk || (hash.header.flags & wire::kByHash) == 0) continue;
      EXPECT_EQ(static_cast<std::uint8_t>(hash.body.bytes()[0]), first_bytes(whole.body.bytes())[0]);
      EXPECT_EQ(hash.header.pass, peers[3].all<wire::Source>().at(0).id);
      EXPECT_EQ(hash.header.total, whole.header.total);
    }
  }
  run_exact(12);
}

TEST_F(CoordinatorChain, WhatIsMissingIsSentAgainAndOnceOnly) {
  start(2);
  step();
  link();
  step();
  const std::uint64_t id = peers[2].all<wire::Source>().at(0).id;
  ASSERT_EQ(by_hash(2, 2).size(), 3U);
  const std::size_t before = frames(2, 2).size();
  say(peers[2], wire::Unfollows{.id = id, .version = 2, .has = {1U << 1}});
  std::vector<ChunkId> again;
  for (const wire::Frame& frame : frames(2, 2))
    if (frames(2, 2).size() > before && frame.header.flags == 0 && frame.header.total >= 4096)
      again.push_back(frame.header.chunk);
  EXPECT_THAT(again, testing::UnorderedElementsAre(0U, 2U));
  const std::size_t after = frames(2, 2).size();
  say(peers[2], wire::Unfollows{.id = id, .version = 0});
  EXPECT_EQ(frames(2, 2).size(), after);
  EXPECT_TRUE(peers[1].all<wire::Guest>().back().secret.empty()) << "it is let in no longer";
  EXPECT_EQ(peers[2].all<wire::Unfollows>().at(0).version, 2U) << "the oldest that it could send again";
  step();
  EXPECT_THAT(by_hash(2, 3), IsEmpty());
  EXPECT_THAT(output.introduced, ElementsAre(Pair(1, 2), Pair(2, 1))) << "not this way again so soon";
  EXPECT_THAT(output.warnings, IsEmpty());
}

TEST_F(CoordinatorChain, WhoDoesNotFindItsSourceIsPartedFromIt) {
  start(2);
  step();
  ASSERT_THAT(output.introduced, ElementsAre(Pair(1, 2)));
  pass_time(Chain::kFoundWithin + ms(100), {&peers[1], &peers[2]});
  step();
  step();
  EXPECT_TRUE(peers[1].all<wire::Guest>().at(1).secret.empty());
  EXPECT_THAT(output.introduced, ElementsAre(Pair(1, 2), Pair(2, 1))) << "the other way is worth a try";
}

TEST_F(CoordinatorChain, WhereASourceIsIsSaidOnce) {
  start(2);
  step();
  link();
  link();
  EXPECT_EQ(peers[2].all<wire::Source>().size(), 1U);
}

TEST_F(CoordinatorChain, OfTheOpenStepWhatWasSentByItsHashIsSentAgain) {
  start(2);
  step();
  link();
  const wire::Grant of_one = begun(peers[1]), of_two = begun(peers[2]);
  push(peers[1], of_one, 0);
  push(peers[2], of_two, 0);
  ASSERT_THAT(by_hash(2, 2), ElementsAre(0U));
  say(peers[2], wire::Unfollows{.id = peers[2].all<wire::Source>().at(0).id});
  EXPECT_EQ(frames(2, 2).size(), 2U);
  EXPECT_EQ(frames(2, 2).back().header.flags, 0);
  EXPECT_EQ(frames(2, 2).back().body.bytes().data(), frames(1, 2).front().body.bytes().data());
}

TEST_F(CoordinatorChain, WhoSendsOtherWeightsIsNotFollowedAgain) {
  start(2);
  step();
  link();
  step();
  say(peers[2], wire::Unfollows{.id = peers[2].all<wire::Source>().at(0).id, .version = 2, .has = {}, .wrong = true});
  ASSERT_EQ(output.warnings.size(), 1U);
  EXPECT_NE(output.warnings[0].find("w2 got other weights from w1"), std::string::npos) << output.warnings[0];
  step();
  EXPECT_THAT(output.introduced, ElementsAre(Pair(1, 2), Pair(2, 1))) << "the other way is worth a try";
}

TEST_F(CoordinatorChain, WhoFollowsALostOneIsSentAllAndFollowsAnother) {
  start(3);
  step();
  link();
  step();
  coordinator->session_closed(2, "the connection was reset", now);
  output.closed[2] = {};
  peers[2].grants.clear();
  collect();
  now += ms(10);
  while (peers[1].grants.size() + peers[3].grants.size() > 0 && output.steps.size() < 3)
    work(peers[1].grants.empty() ? peers[3] : peers[1]);
  ASSERT_EQ(output.steps.size(), 3U);
  EXPECT_THAT(by_hash(3, 3), IsEmpty());
  EXPECT_EQ(output.introduced.back(), std::pair(SessionId{1}, SessionId{3}));
  std::vector<bool> named;
  for (const wire::Guest& guest : peers[1].all<wire::Guest>()) named.push_back(!guest.secret.empty());
  EXPECT_THAT(named, ElementsAre(true, false, true)) << "the lost one is let in no longer";
  peers.erase(2);
  run_exact(12);
}

TEST_F(CoordinatorChain, WhoNamesItselfMayHaveLostItsOwnSource) {
  start(3);
  step();
  coordinator->session_closed(1, "the connection was reset", now);
  output.closed[1] = {};
  collect();
  const wire::Guest guest = peers[2].all<wire::Guest>().at(0);
  say(peers[2], wire::Source{.id = guest.id, .port = 9, .addresses = {"10.0.0.1"}, .secret = {}, .spki = {}});
  EXPECT_EQ(peers[3].all<wire::Source>().at(0).hops, 1U);
}

TEST_F(CoordinatorChain, WhoCannotIsLeftOut) {
  make_with({1, 1, 1});
  join(1);
  features.clear();
  join(2);
  features = {kChain};
  join(3);
  step();
  EXPECT_THAT(output.introduced, ElementsAre(Pair(1, 3)));
  EXPECT_THAT(peers[2].all<wire::Guest>(), IsEmpty());
}

TEST_F(CoordinatorChain, TheSlowestLinkIsLast) {
  make_with({1, 1, 1});
  join(1, ms(8000));
  join(2, ms(1000));
  join(3, ms(2500));
  step();
  EXPECT_THAT(output.introduced, ElementsAre(Pair(2, 3), Pair(3, 1)));
  link();
  run_exact(12);
}

TEST_F(CoordinatorChain, WhoComesLaterIsPutInFrontOfTheClearlySlower) {
  options.min_workers = 2;
  options.shares = {1, 1, 1, 1};
  make();
  join(1, ms(1000));
  join(2, ms(8000));
  step();
  ASSERT_THAT(output.introduced, ElementsAre(Pair(1, 2)));
  link();
  join(3, ms(3000));
  step();
  step();
  EXPECT_THAT(output.introduced, ElementsAre(Pair(1, 2), Pair(1, 3), Pair(3, 2)));
  EXPECT_TRUE(peers[1].all<wire::Guest>().at(1).secret.empty()) << "the slow one is let in no longer";
  link();
  join(4, ms(20000));
  step();
  step();
  EXPECT_EQ(output.introduced.back(), std::pair(SessionId{2}, SessionId{4}));
  EXPECT_EQ(output.introduced.size(), 4U);
}

TEST_F(CoordinatorChain, WhoStandsBehindOneThatCameInBetweenIsToldOfOneHopMore) {
  options.min_workers = 3;
  options.shares = {1, 1, 1, 1};
  make();
  join(1, ms(1000));
  join(2, ms(8000));
  join(3, ms(8000));
  step();
  link();
  ASSERT_EQ(peers[3].all<wire::Source>().back().hops, 1U);
  join(4, ms(3000));
  step();
  step();
  link();
  EXPECT_EQ(peers[3].all<wire::Source>().back().hops, 2U);
  run_exact(12);
}

TEST_F(CoordinatorChain, NobodyFollowsAClearlySlowerOne) {
  options.min_workers = 2;
  options.shares = {1, 1, 1};
  make();
  join(1, ms(1000));
  join(2, ms(1500));
  step();
  link();
  step();
  say(peers[2], wire::Unfollows{.id = peers[2].all<wire::Source>().at(0).id, .version = 2});
  step();
  link();
  step();
  say(peers[1], wire::Unfollows{.id = peers[1].all<wire::Source>().at(0).id, .version = 4});
  join(3, ms(9000));
  step();
  step();
  EXPECT_THAT(output.introduced, ElementsAre(Pair(1, 2), Pair(2, 1), Pair(1, 3)));
}

TEST_F(CoordinatorChain, WithoutItNobodyIsBroughtTogether) {
  options.chain = CoordinatorOptions::Chain::none;
  start(2);
  step();
  EXPECT_THAT(output.introduced, IsEmpty());
}

}  // namespace
}  // namespace motley::engine
