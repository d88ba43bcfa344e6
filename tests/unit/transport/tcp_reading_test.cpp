// Reading that is put off: nothing is lost by it, others are served meanwhile, and closing works.

#include <thread>

#include "raw_peer.h"

namespace motley::transport {
namespace {

struct Counter final : Receiver {
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t frames = 0;
  void on_frame(wire::Frame /*frame*/) override {
    const std::lock_guard lock(mutex);
    ++frames;
    changed.notify_all();
  }
  void on_closed(Error /*error*/) override {}
  std::size_t wait(std::size_t count) {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, kPatience, [&] { return frames >= count; });
    return frames;
  }
};

struct Guest {
  std::shared_ptr<Connection> connection;
  std::shared_ptr<Counter> counter = std::make_shared<Counter>();
  RawPeer peer;
};

/// One I/O thread; what it accepts is proven.
class House {
 public:
  House() {
    auto listening =
        tcp_.listen({"127.0.0.1", 0}, [this](std::shared_ptr<Connection> c) { came_.set_value(std::move(c)); });
    EXPECT_TRUE(listening.ok());
    listener_ = std::move(listening).value();
  }
  Guest guest() {
    came_ = {};
    RawPeer peer = RawPeer::connect(listener_->port());
    Guest guest{.connection = came_.get_future().get(), .peer = std::move(peer)};
    guest.connection->mark_proven();
    return guest;
  }

 private:
  Tcp tcp_{plain_options()};
  std::promise<std::shared_ptr<Connection>> came_;
  std::unique_ptr<Listener> listener_;
};

TEST(TcpReading, WhatWaitedComesWholeWhenReadingGoesOn) {
  House house;
  Guest held = house.guest();
  held.connection->set_reading(false);
  held.connection->start(held.counter);
  constexpr std::size_t kFrames = 20;
  for (std::size_t i = 0; i < kFrames; ++i) ASSERT_TRUE(held.peer.send(frame_of(wire::FrameType::gradient, 1000)));
  Guest other = house.guest();
  other.connection->start(other.counter);
  ASSERT_TRUE(other.peer.send(frame_of(wire::FrameType::gradient, 1000)));
  EXPECT_EQ(other.counter->wait(1), 1U);
  EXPECT_EQ(held.counter->wait(0), 0U);
  held.connection->set_reading(true);
  EXPECT_EQ(held.counter->wait(kFrames), kFrames);
}

TEST(TcpReading, APartOfAFrameCountsWhenItComes) {
  House house;
  Guest guest = house.guest();
  guest.connection->start(guest.counter);
  const wire::Frame frame = frame_of(wire::FrameType::gradient, 100'000);
  const std::span<const std::byte> body = frame.body.bytes();
  ASSERT_TRUE(guest.peer.send(wire::encode_header(frame.header)));
  ASSERT_TRUE(guest.peer.send(body.first(body.size() / 2)));
  const auto came = [&] { return guest.connection->traffic().received_bytes; };
  const std::uint64_t half = wire::kHeaderBytes + body.size() / 2;
  for (const auto end = std::chrono::steady_clock::now() + kPatience; came() < half;) {
    ASSERT_LT(std::chrono::steady_clock::now(), end);
    std::this_thread::yield();
  }
  EXPECT_EQ(came(), half);
  ASSERT_TRUE(guest.peer.send(body.subspan(body.size() / 2)));
  EXPECT_EQ(guest.counter->wait(1), 1U);
  EXPECT_EQ(came(), wire::kHeaderBytes + body.size());
}

TEST(TcpReading, MayStopAndGoOnManyTimes) {
  House house;
  Guest guest = house.guest();
  guest.connection->start(guest.counter);
  constexpr std::size_t kFrames = 200;
  for (std::size_t i = 0; i < kFrames; ++i) {
    guest.connection->set_reading(i % 2 == 0);
    ASSERT_TRUE(guest.peer.send(frame_of(wire::FrameType::gradient, 1000)));
  }
  guest.connection->set_reading(true);
  EXPECT_EQ(guest.counter->wait(kFrames), kFrames);
}

TEST(TcpReading, AConnectionThatIsNotReadCanBeClosed) {
  House house;
  Guest guest = house.guest();
  guest.connection->set_reading(false);
  guest.connection->start(guest.counter);
  ASSERT_TRUE(guest.peer.send(frame_of(wire::FrameType::gradient, 1000)));
  guest.connection->close();
  EXPECT_TRUE(guest.peer.closed_by_peer());
}

/// Large bodies are not read at every packet; none of that may hold up their end, or what is small.
TEST(TcpReading, BodiesOfAnyLengthComeWithoutMoreBehindThem) {
  House house;
  Guest guest = house.guest();
  guest.connection->start(guest.counter);
  std::size_t count = 0;
  for (const std::size_t size : {131'071, 131'072, 131'073, 200'000, 1 << 20}) {
    for (const std::size_t each : {size, std::size_t{10}}) {
      ASSERT_TRUE(guest.peer.send(frame_of(wire::FrameType::weights, each)));
      ASSERT_EQ(guest.counter->wait(++count), count);
    }
  }
}

TEST(TcpReading, AnEndInTheMiddleOfALargeBodyIsNoticed) {
  Door door(plain_options());
  door.trust();
  RawPeer peer = RawPeer::connect(door.port());
  const wire::Frame frame = frame_of(wire::FrameType::weights, 1 << 20);
  ASSERT_TRUE(peer.send(wire::encode_header(frame.header)));
  ASSERT_TRUE(peer.send(frame.body.bytes().first(5000)));
  peer.end();
  EXPECT_NE(door.wait_ended(1).front().message.find("in the middle of a frame"), std::string::npos);
}

TEST(TcpReading, AConnectionCanBeClosedInTheMiddleOfALargeBody) {
  House house;
  Guest guest = house.guest();
  guest.connection->start(guest.counter);
  const wire::Frame frame = frame_of(wire::FrameType::weights, 1 << 20);
  ASSERT_TRUE(guest.peer.send(frame_of(wire::FrameType::gradient, 10)));
  ASSERT_TRUE(guest.peer.send(wire::encode_header(frame.header)));
  ASSERT_TRUE(guest.peer.send(frame.body.bytes().first(5000)));
  ASSERT_EQ(guest.counter->wait(1), 1U);
  guest.connection->close();
  EXPECT_TRUE(guest.peer.closed_by_peer());
}

}  // namespace
}  // namespace motley::transport
