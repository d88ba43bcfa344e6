#pragma once
// A connected pair over each transport, and a receiver that can be waited for. Waiting has a deadline far beyond what
// is needed, so that a failure shows as a failed expectation and not as a hang.

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "transport/connection.h"
#include "transport/inproc/inproc.h"
#include "transport/tcp/tcp.h"

namespace motley::transport {

inline constexpr std::chrono::seconds kPatience{20};

/// Keeps what comes. Thread-safe.
class Recorder : public Receiver {
 public:
  ~Recorder() override { gone_.set_value(); }
  /// Ready once nobody holds this receiver any more.
  std::future<void> gone() { return gone_.get_future(); }

  void on_frame(wire::Frame frame) override {
    EXPECT_FALSE(inside_.exchange(true)) << "two callbacks at once";
    const std::lock_guard lock(mutex_);
    EXPECT_FALSE(error_.has_value()) << "a frame after on_closed";
    frames_.push_back(std::move(frame));
    changed_.notify_all();
    inside_ = false;
  }
  void on_closed(Error error) override {
    EXPECT_FALSE(inside_.exchange(true)) << "two callbacks at once";
    const std::lock_guard lock(mutex_);
    EXPECT_FALSE(error_.has_value()) << "on_closed twice";
    error_ = std::move(error);
    changed_.notify_all();
    inside_ = false;
  }
  bool wait_frames(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return frames_.size() >= count; });
  }
  std::optional<Error> wait_closed() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kPatience, [&] { return error_.has_value(); });
    return error_;
  }
  std::vector<wire::Frame> frames() {
    const std::lock_guard lock(mutex_);
    return frames_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<wire::Frame> frames_;
  std::optional<Error> error_;
  std::atomic<bool> inside_{false};
  std::promise<void> gone_;
};

/// A frame whose body is `size` bytes made from `seed`.
wire::Frame make_frame(wire::FrameType type, std::uint64_t subject, std::size_t size, std::uint8_t seed = 0);
bool body_is(const wire::Frame& frame, std::size_t size, std::uint8_t seed);

enum class Kind : std::uint8_t { inproc, local, tcp_plain, tcp_tls };

struct Ends {
  std::shared_ptr<Connection> client;
  std::shared_ptr<Connection> server;
};

/// Two connected ends; but for inproc each has a Tcp of its own, as two processes have.
class World {
 public:
  explicit World(Kind kind);
  Ends connect();
  /// Destroys the transport under the client's handles. Nothing to do in one process.
  void stop_client() { client_tcp_.reset(); }
  [[nodiscard]] const std::optional<Identity>& client_identity() const { return client_identity_; }
  [[nodiscard]] const std::optional<Identity>& server_identity() const { return server_identity_; }

 private:
  Kind kind_;
  Endpoint endpoint_;
  std::optional<Identity> client_identity_, server_identity_;
  std::unique_ptr<Tcp> server_tcp_, client_tcp_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Connection>> accepted_;
  std::unique_ptr<Listener> listener_;
};

class TransportTest : public ::testing::TestWithParam<Kind> {
 protected:
  World world_{GetParam()};
};

}  // namespace motley::transport
