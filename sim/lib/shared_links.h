#pragma once
// Links of machines that several connections share: each machine has one, as fast in both directions, and a frame takes
// that of who sends and that of who gets it at once. Connections take turns, frame by frame, much as TCP shares a link;
// what is short goes between. Nothing fails here. One thread.

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <vector>

#include "base/time.h"
#include "sim/event_queue.h"
#include "wire/frame.h"

namespace motley::sim {

class SharedLinks {
 public:
  using Machine = std::size_t;
  using Stream = std::size_t;
  using Arrived = std::function<void(wire::Frame)>;
  static constexpr std::size_t kShortBytes = 4096;

  SharedLinks(EventQueue& queue, std::size_t machines, double bytes_per_second, Duration delay)
      : queue_(queue), bytes_per_second_(bytes_per_second), delay_(delay), machines_(machines) {}

  /// One direction of a connection, which keeps the order of frames.
  Stream open(Machine from, Machine to, Arrived arrived);
  void send(Stream stream, wire::Frame frame);

  struct Carried {
    std::uint64_t in = 0, out = 0;  // bytes
  };
  [[nodiscard]] const Carried& carried(Machine machine) const { return machines_.at(machine).carried; }
  [[nodiscard]] std::uint64_t frames() const noexcept { return frames_; }

 private:
  struct Port {
    bool sends = false, receives = false;
    Carried carried;
  };
  struct Flow {
    Machine from = 0, to = 0;
    Arrived arrived;
    std::deque<wire::Frame> waiting{};
    bool listed = false;
  };
  void pump();
  /// False: it waits for a link.
  bool start(Stream stream);
  void deliver(Stream stream, wire::Frame frame);

  EventQueue& queue_;
  double bytes_per_second_;
  Duration delay_;
  std::vector<Port> machines_;
  std::deque<Flow> flows_;
  std::list<Stream> turns_;  // that have something to send
  std::uint64_t frames_ = 0;
};

}  // namespace motley::sim
