#pragma once
// A peer that keeps to no rules: a plain socket. Waiting has a deadline, so that a failure is no hang.

#include "raw_socket.h"
// After it.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <future>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "transport/tcp/tcp.h"
#include "wire/frame.h"

namespace motley::transport {

inline constexpr std::chrono::seconds kPatience{20};

class RawPeer {
 public:
  explicit RawPeer(int fd) : fd_(fd) { raw::be_patient(fd_); }
  RawPeer(RawPeer&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  RawPeer& operator=(RawPeer&&) = delete;
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;
  ~RawPeer() {
    if (fd_ >= 0) raw::shut(fd_);
  }
  static RawPeer connect(std::uint16_t port) {
    const int fd = raw::open_socket();
    const sockaddr_in address = raw::loopback(port);
    EXPECT_EQ(::connect(raw::handle_of(fd), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return RawPeer(fd);
  }
  /// False when the other side has closed.
  bool send(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const long count = raw::send(fd_, bytes);
      if (count <= 0) return false;
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
    return true;
  }
  bool send(const wire::Frame& frame) { return send(wire::encode_header(frame.header)) && send(frame.body.bytes()); }
  void end() { ::shutdown(raw::handle_of(fd_), raw::kSendSide); }
  void reset() {
    const linger now{1, 0};
    raw::set_option(fd_, SO_LINGER, now);
    raw::shut(std::exchange(fd_, -1));
  }
  /// All that comes until the other side closes; nothing if it does not.
  std::optional<std::vector<std::byte>> read_to_end() {
    std::vector<std::byte> all;
    std::array<std::byte, 4096> buffer;
    while (true) {
      const long count = raw::receive(fd_, buffer);
      if (count < 0 && raw::timed_out()) return std::nullopt;
      if (count <= 0) return all;
      all.insert(all.end(), buffer.begin(), buffer.begin() + count);
    }
  }
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] bool closed_by_peer() { return read_to_end().has_value(); }

 private:
  int fd_;
};

/// Listens on a port of its own and never says a word.
class SilentServer {
 public:
  SilentServer() : fd_(raw::open_socket()) {
    sockaddr_in address = raw::loopback(0);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(raw::handle_of(fd_), reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(raw::handle_of(fd_), 16), 0);
    EXPECT_EQ(::getsockname(raw::handle_of(fd_), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
  }
  ~SilentServer() { raw::shut(fd_); }
  SilentServer(const SilentServer&) = delete;
  SilentServer& operator=(const SilentServer&) = delete;
  [[nodiscard]] std::uint16_t port() const { return port_; }
  RawPeer accept() { return RawPeer(static_cast<int>(::accept(raw::handle_of(fd_), nullptr, nullptr))); }

 private:
  int fd_;
  std::uint16_t port_ = 0;
};

/// Accepts everything and notes how each connection ended.
class Door {
 public:
  explicit Door(TcpOptions options) : tcp_(std::move(options)) {
    auto listener = tcp_.listen({"127.0.0.1", 0}, [this](std::shared_ptr<Connection> c) { on_accept(std::move(c)); });
    EXPECT_TRUE(listener.ok());
    listener_ = std::move(listener).value();
  }
  [[nodiscard]] std::uint16_t port() const { return listener_->port(); }
  Tcp& tcp() { return tcp_; }
  /// Connections are taken as proven when they arrive.
  void trust() { trusting_ = true; }
  /// The errors of the first `count` connections that ended.
  std::vector<Error> wait_ended(std::size_t count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kPatience, [&] { return ended_.size() >= count; }));
    return ended_;
  }
  std::size_t wait_frames(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kPatience, [&] { return frames_ >= count; });
    return frames_;
  }
  std::size_t frames() {
    const std::lock_guard lock(mutex_);
    return frames_;
  }

 private:
  struct Guest : Receiver {
    explicit Guest(Door& owner) : door(owner) {}
    void on_frame(wire::Frame) override {
      const std::lock_guard lock(door.mutex_);
      ++door.frames_;
      door.changed_.notify_all();
    }
    void on_closed(Error error) override {
      const std::lock_guard lock(door.mutex_);
      door.ended_.push_back(std::move(error));
      connection.reset();
      door.changed_.notify_all();
    }
    Door& door;
    std::shared_ptr<Connection> connection;
  };
  void on_accept(std::shared_ptr<Connection> connection) {
    if (trusting_) connection->mark_proven();
    auto guest = std::make_shared<Guest>(*this);
    guest->connection = connection;
    connection->start(guest);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Error> ended_;
  std::size_t frames_ = 0;
  std::atomic<bool> trusting_{false};
  Tcp tcp_;
  std::unique_ptr<Listener> listener_;
};

inline TcpOptions plain_options() {
  TcpOptions options;
  options.plaintext = true;
  return options;
}

inline TcpOptions tls_options() {
  TcpOptions options;
  options.identity = make_identity();
  return options;
}

inline Result<std::shared_ptr<Connection>> connect(Tcp& tcp, std::vector<Endpoint> endpoints,
                                                   std::optional<Digest> pin = std::nullopt,
                                                   std::chrono::milliseconds timeout = kPatience) {
  std::promise<Result<std::shared_ptr<Connection>>> promise;
  tcp.connect(std::move(endpoints), pin, timeout,
              [&](Result<std::shared_ptr<Connection>> result) { promise.set_value(std::move(result)); });
  return promise.get_future().get();
}

inline wire::Frame frame_of(wire::FrameType type, std::size_t size) {
  wire::FrameHeader header;
  header.type = type;
  return wire::seal(header, SharedBytes::copy_of(std::vector<std::byte>(size)));
}

/// Lets the destructor of a test's Connection handle be the only thing that closes it.
struct Ignore : Receiver {
  void on_frame(wire::Frame) override {}
  void on_closed(Error error) override { closed.set_value(std::move(error)); }
  std::promise<Error> closed;
};

}  // namespace motley::transport
