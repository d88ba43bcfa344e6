#pragma once
// Frames on their way to a socket: one queue a priority, and the batch that is being written. Private to tcp/.

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "transport/connection.h"
#include "transport/tcp/net.h"
#include "wire/frame.h"

namespace motley::transport {

/// Not thread-safe: guarded by its owner's mutex.
class SendQueue {
 public:
  void push(wire::Frame frame, Priority priority);
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  /// REQUIRES !empty().
  wire::Frame pop();
  void clear();

 private:
  /// In memory that is kept: a deque takes and gives back a block every few frames.
  class Line {
   public:
    [[nodiscard]] bool empty() const noexcept { return first_ == frames_.size(); }
    void push(wire::Frame frame);
    wire::Frame pop();
    void clear();

   private:
    std::vector<wire::Frame> frames_;
    std::size_t first_ = 0;  // those before it are gone
  };
  std::array<Line, kPriorities> lines_;
  std::size_t count_ = 0;
};

/// The pieces of a few frames, headers and bodies, in the order they go out. Bodies are referenced, never copied.
class Batch {
 public:
  // What is in a batch can no longer be overtaken; what fills it sets the cost of a system call per frame.
  static constexpr std::size_t kFramesMax = 32;  // Asio hands 64 pieces to one call
  static constexpr std::size_t kBytesEnough = 256 << 10;

  Batch();
  [[nodiscard]] bool full() const noexcept { return frames_.size() == kFramesMax || bytes_ >= kBytesEnough; }
  void add(wire::Frame frame);
  [[nodiscard]] bool empty() const noexcept { return first_ == pieces_.size(); }
  [[nodiscard]] std::span<const net::const_buffer> pieces() const noexcept;
  void consume(std::size_t count);
  void clear();

 private:
  std::vector<wire::Frame> frames_;
  std::vector<std::array<std::byte, wire::kHeaderBytes>> headers_;
  std::vector<net::const_buffer> pieces_;
  std::size_t first_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace motley::transport
