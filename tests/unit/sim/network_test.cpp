#include "sim/network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/process.h"

namespace motley::sim {
namespace {

using engine::Lane;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;

class NetworkTest : public testing::Test {
 protected:
  NetworkTest() {
    network.set_link(0, {milliseconds(1), milliseconds(5), 0.1, 1e6});
    Network::End worker, head;
    worker.frame = [](wire::Frame, Lane) {};
    worker.closed = [this](const std::string& why) { worker_closed.push_back(why); };
    head.frame = [this](const wire::Frame& frame, Lane) { heard.push_back(frame.header.subject); };
    head.closed = [this](const std::string& why) { head_closed.push_back(why); };
    session = network.open(0, std::move(worker), std::move(head));
  }
  void send(std::uint64_t number, Lane lane = Lane::control) {
    wire::FrameHeader header;
    header.subject = number;
    network.send(session, Side::worker, wire::seal(header, {}), lane);
  }
  void run() {
    while (queue.step()) {
    }
  }
  void run_until(Time end) {
    bool over = false;
    queue.at(end, [&] { over = true; });
    while (!over && queue.step()) {
    }
  }

  EventQueue queue;
  Trace trace;
  Network network{queue, trace, {.seed = 7, .duplicate_probability = 0, .own_background = false}};
  Network::SessionId session = 0;
  std::vector<std::uint64_t> heard;
  std::vector<std::string> worker_closed, head_closed;
};

TEST_F(NetworkTest, AConnectionKeepsItsOrder) {
  std::vector<std::uint64_t> sent;
  for (std::uint64_t i = 0; i < 200; ++i) {
    send(i);
    sent.push_back(i);
  }
  run();
  EXPECT_EQ(heard, sent);
}

TEST_F(NetworkTest, ConnectionsOvertakeEachOther) {
  bool overtaken = false;
  for (std::uint64_t round = 0; round < 50 && !overtaken; ++round) {
    heard.clear();
    send(1, Lane::gradients);
    send(2, Lane::control);
    run();
    overtaken = heard == std::vector<std::uint64_t>{2, 1};
  }
  EXPECT_TRUE(overtaken);
}

TEST_F(NetworkTest, BlockedBytesStallAndFlowInOrder) {
  send(1);
  network.block(0, Side::head, true);
  send(2);
  run_until(std::chrono::seconds(3));
  EXPECT_THAT(heard, IsEmpty());
  network.block(0, Side::head, false);
  send(3);
  run();
  EXPECT_THAT(heard, ElementsAre(1, 2, 3));
}

TEST_F(NetworkTest, OnlyDataStalls) {
  network.block_data(0, Side::head, true);
  send(1, Lane::gradients);
  send(2, Lane::control);
  run();
  EXPECT_THAT(heard, ElementsAre(2));
  network.block_data(0, Side::head, false);
  run();
  EXPECT_THAT(heard, ElementsAre(2, 1));
}

TEST_F(NetworkTest, AClosedEndIsHeardOfAfterWhatWasSent) {
  send(1);
  network.close(session, Side::worker);
  send(2);
  run();
  EXPECT_THAT(heard, ElementsAre(1));
  EXPECT_EQ(head_closed.size(), 1U);
  EXPECT_THAT(worker_closed, IsEmpty());
}

TEST_F(NetworkTest, AResetLosesWhatIsUnderWayAndBothHear) {
  send(1);
  network.reset(session, "reset");
  send(2);
  run();
  EXPECT_THAT(heard, IsEmpty());
  EXPECT_EQ(head_closed.size(), 1U);
  EXPECT_EQ(worker_closed.size(), 1U);
}

TEST_F(NetworkTest, AVanishedMachineIsNotHeardOf) {
  network.vanish(session, Side::worker);
  run();
  EXPECT_THAT(head_closed, IsEmpty());
}

TEST(ProcessTest, AFrozenProcessDoesEverythingAtOnceLater) {
  EventQueue queue;
  Process process(queue);
  std::vector<int> done;
  process.start();
  process.freeze();
  process.run([&] { done.push_back(1); });
  process.later(milliseconds(5), [&] { done.push_back(2); });
  while (queue.step()) {
  }
  EXPECT_THAT(done, IsEmpty());
  process.thaw();
  EXPECT_THAT(done, ElementsAre(1, 2));
}

TEST(ProcessTest, ADeadProcessDoesNothingAndItsNextLifeForgets) {
  EventQueue queue;
  Process process(queue);
  std::vector<int> done;
  process.start();
  process.later(milliseconds(5), [&] { done.push_back(1); });
  process.kill();
  process.start();
  process.later(milliseconds(5), [&] { done.push_back(2); });
  while (queue.step()) {
  }
  EXPECT_THAT(done, ElementsAre(2));
}

}  // namespace
}  // namespace motley::sim
