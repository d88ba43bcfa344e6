#pragma once
// The network between the head and its workers. A session has a few connections, each a FIFO of frames each way, with
// delay and bandwidth, as TCP gives them: nothing is lost or reordered on a connection unless it is reset; connections
// overtake each other. A link can be blocked in either direction: bytes stall, and flow when it opens again. One
// thread.

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/philox.h"
#include "engine/link.h"
#include "fleet/member.h"
#include "sim/event_queue.h"
#include "sim/trace.h"
#include "wire/frame.h"

namespace motley::sim {

enum class Side : std::uint8_t { worker, head };
inline constexpr Side other(Side side) { return side == Side::worker ? Side::head : Side::worker; }

struct LinkProfile {
  Duration delay_min{};
  Duration delay_mean{};
  double spike_probability = 0;  // a frame that takes ten times as long
  double bytes_per_second = 1e9;
};

struct NetworkOptions {
  std::uint64_t seed = 0;
  double duplicate_probability = 0;  // hostile: a frame is delivered again, at once or somewhat later
  bool own_background = false;       // the background class has a connection of its own
};

class Network {
 public:
  using SessionId = fleet::SessionId;
  /// How an end hears. Called at the virtual time of arrival.
  struct End {
    std::function<void(wire::Frame, engine::Lane)> frame;
    std::function<void(const std::string& why)> closed;
  };

  Network(EventQueue& queue, Trace& trace, NetworkOptions options);

  void set_link(std::size_t link, const LinkProfile& profile);
  /// Whether both directions work now.
  [[nodiscard]] bool reachable(std::size_t link) const;
  [[nodiscard]] Duration round_trip(std::size_t link);
  /// `to`: frames towards that side stall.
  void block(std::size_t link, Side to, bool blocked);
  /// The same for all connections but the control connection.
  void block_data(std::size_t link, Side to, bool blocked);

  SessionId open(std::size_t link, End worker, End head);
  /// Lost when the sender has closed its end. Where nobody listens any more, the answer is a reset.
  void send(SessionId session, Side from, wire::Frame frame, engine::Lane lane);
  /// `side` closes in order: the other side gets what was sent, then hears of it.
  void close(SessionId session, Side side);
  /// `side` is gone without a word (power lost): the other side hears nothing.
  void vanish(SessionId session, Side side);
  /// Both ends that can be reached hear of it soon; what is under way is lost.
  void reset(SessionId session, const std::string& why);
  void reset_link(std::size_t link, const std::string& why);

  [[nodiscard]] std::uint64_t frames() const noexcept { return frames_; }
  [[nodiscard]] std::uint64_t duplicates() const noexcept { return duplicates_; }

 private:
  struct Item {
    bool last = false;  // the end of the stream
    engine::Lane lane = engine::Lane::control;
    wire::Frame frame;
  };
  struct Pipe {
    std::deque<Item> flight;
    Time free{};     // when the last byte has left
    Time arrival{};  // of the last item
    std::uint64_t epoch = 0;
  };
  static constexpr std::size_t kPipes = 3;
  struct Session {
    std::size_t link = 0;
    std::array<End, 2> ends;                            // by Side
    std::array<bool, 2> open{true, true};               // likewise
    std::array<bool, 2> vanished{};                     // likewise
    bool dead = false;                                  // was reset
    std::array<std::array<Pipe, kPipes>, 2> towards{};  // likewise
  };
  struct Link {
    LinkProfile profile;
    std::array<bool, 2> blocked{}, data_blocked{};  // towards Side
  };

  [[nodiscard]] std::size_t pipe_of(engine::Lane lane) const;
  [[nodiscard]] static bool stalled(const Link& link, Side to, std::size_t pipe);
  void restart(std::size_t link, Side to, const Link& before);
  Duration delay(const LinkProfile& profile);
  void push(SessionId id, Side to, std::size_t pipe, Item item);
  void schedule(SessionId id, Side to, std::size_t pipe, std::size_t bytes);
  void arrive(SessionId id, Side to, std::size_t pipe, std::uint64_t epoch);
  void deliver(Session& session, SessionId id, Side to, const Item& item);
  void refuse(SessionId id, Side sender);
  void lose(SessionId id, Side side, const std::string& why);

  EventQueue& queue_;
  Trace& trace_;
  NetworkOptions options_;
  Philox random_;
  std::map<std::size_t, Link> links_;
  std::map<SessionId, Session> sessions_;
  SessionId last_session_ = 0;
  std::uint64_t frames_ = 0, duplicates_ = 0;
};

}  // namespace motley::sim
