#include "transport/inproc/inproc.h"

#include <atomic>
#include <deque>
#include <mutex>
#include <optional>

#include "base/assert.h"

namespace motley::transport {
namespace {

Error closed_by(const char* whom) {
  return {ErrorCode::network, std::string("the connection was closed by ") + whom, ""};
}

/// One direction's receiving end and what waits for it.
struct Side {
  std::shared_ptr<Receiver> receiver;
  bool started = false;
  bool closing = false;       // close() was called here: nothing more is sent or delivered
  std::optional<Error> over;  // on_closed is due once `inbox` is empty
  bool done = false;          // on_closed was delivered, or never will be
  std::array<std::deque<wire::Frame>, kPriorities> inbox;
  std::atomic<std::size_t> inbox_bytes{0};
  std::atomic<std::uint64_t> received_bytes{0};
  std::atomic<std::uint64_t> sent_bytes{0};

  bool inbox_empty() const {
    for (const auto& queue : inbox) {
      if (!queue.empty()) return false;
    }
    return true;
  }
};

std::size_t bytes_of(const wire::Frame& frame) { return wire::kHeaderBytes + frame.body.size(); }

/// The two sides. Whoever makes something to deliver delivers it, unless somebody does so already, who then goes on
/// with it: so calls come one at a time, and none from within another one. Every field of a Side is guarded by
/// `mutex_`, the counters apart.
class Pair {
 public:
  void start(int side, std::shared_ptr<Receiver> receiver) {
    std::unique_lock lock(mutex_);
    MOTLEY_ASSERT(!sides_[side].started);
    MOTLEY_ASSERT(receiver != nullptr);
    sides_[side].started = true;
    sides_[side].receiver = std::move(receiver);
    deliver_all(lock);
  }
  void send(int side, wire::Frame frame, Priority priority) {
    MOTLEY_ASSERT(frame.header.length == frame.body.size());
    std::unique_lock lock(mutex_);
    Side& mine = sides_[side];
    Side& other = sides_[1 - side];
    if (mine.closing || mine.over.has_value() || other.closing) return;
    other.inbox_bytes += bytes_of(frame);
    other.inbox[static_cast<std::size_t>(priority)].push_back(std::move(frame));
    deliver_all(lock);
  }
  void close(int side) {
    std::unique_lock lock(mutex_);
    Side& mine = sides_[side];
    Side& other = sides_[1 - side];
    if (mine.closing) return;
    mine.closing = true;
    for (auto& queue : mine.inbox) queue.clear();
    mine.inbox_bytes = 0;
    if (!mine.over) mine.over = closed_by("this side");
    if (!other.over) other.over = closed_by("the other side");
    deliver_all(lock);
  }
  const Side& side(int index) const { return sides_[index]; }

 private:
  void deliver_all(std::unique_lock<std::mutex>& lock) {
    if (delivering_) return;
    delivering_ = true;
    for (bool more = true; more;) {
      const bool first = deliver(lock, 0);
      more = deliver(lock, 1) || first;
    }
    delivering_ = false;
  }
  /// At most one callback to that side; false when there was nothing to do.
  bool deliver(std::unique_lock<std::mutex>& lock, int index) {
    Side& side = sides_[index];
    if (!side.started || side.done) return false;
    for (auto& queue : side.inbox) {
      if (queue.empty()) continue;
      wire::Frame frame = std::move(queue.front());
      queue.pop_front();
      const std::size_t bytes = bytes_of(frame);
      side.inbox_bytes -= bytes;
      side.received_bytes += bytes;
      sides_[1 - index].sent_bytes += bytes;
      const std::shared_ptr<Receiver> receiver = side.receiver;
      lock.unlock();
      receiver->on_frame(std::move(frame));
      lock.lock();
      return true;
    }
    if (!side.over) return false;
    side.done = true;
    std::shared_ptr<Receiver> receiver = std::move(side.receiver);
    const Error error = *side.over;
    lock.unlock();
    receiver->on_closed(error);
    receiver.reset();
    lock.lock();
    return true;
  }

  std::mutex mutex_;
  bool delivering_ = false;
  std::array<Side, 2> sides_;
};

class InprocConnection final : public Connection {
 public:
  InprocConnection(std::shared_ptr<Pair> pair, int side) : pair_(std::move(pair)), side_(side) {
    peer_.address = "inproc";
  }
  ~InprocConnection() override { pair_->close(side_); }
  InprocConnection(const InprocConnection&) = delete;
  InprocConnection& operator=(const InprocConnection&) = delete;

  // What is called from here may drop the last handle.
  void start(std::shared_ptr<Receiver> receiver) override {
    const std::shared_ptr<Pair> pair = pair_;
    pair->start(side_, std::move(receiver));
  }
  void send(wire::Frame frame, Priority priority) override {
    const std::shared_ptr<Pair> pair = pair_;
    pair->send(side_, std::move(frame), priority);
  }
  void close() override {
    const std::shared_ptr<Pair> pair = pair_;
    pair->close(side_);
  }
  void set_reading(bool /*on*/) override {}  // both ends are this process's own
  std::size_t queued_bytes() const override { return pair_->side(1 - side_).inbox_bytes; }
  Traffic traffic() const override {
    const Side& mine = pair_->side(side_);
    return {mine.sent_bytes, mine.received_bytes};
  }
  const PeerIdentity& peer() const override { return peer_; }
  void mark_proven() override {}

 private:
  std::shared_ptr<Pair> pair_;
  int side_;
  PeerIdentity peer_;
};

}  // namespace

std::pair<std::shared_ptr<Connection>, std::shared_ptr<Connection>> make_inproc_pair() {
  auto pair = std::make_shared<Pair>();
  return {std::make_shared<InprocConnection>(pair, 0), std::make_shared<InprocConnection>(pair, 1)};
}

}  // namespace motley::transport
