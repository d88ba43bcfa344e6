#include "transport/inproc/inproc.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

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

/// The two sides and the loop of the thread that delivers to both. Every field of a Side is guarded by `mutex`, the
/// counters apart.
class Pair {
 public:
  void start(int side, std::shared_ptr<Receiver> receiver) {
    const std::lock_guard lock(mutex_);
    MOTLEY_ASSERT(!sides_[side].started);
    MOTLEY_ASSERT(receiver != nullptr);
    sides_[side].started = true;
    sides_[side].receiver = std::move(receiver);
    wake_.notify_one();
  }
  void send(int side, wire::Frame frame, Priority priority) {
    MOTLEY_ASSERT(frame.header.length == frame.body.size());
    const std::lock_guard lock(mutex_);
    Side& mine = sides_[side];
    Side& other = sides_[1 - side];
    if (mine.closing || mine.over.has_value() || other.closing) return;
    other.inbox_bytes += bytes_of(frame);
    other.inbox[static_cast<std::size_t>(priority)].push_back(std::move(frame));
    if (other.started) wake_.notify_one();
  }
  void close(int side) {
    const std::lock_guard lock(mutex_);
    Side& mine = sides_[side];
    Side& other = sides_[1 - side];
    if (mine.closing) return;
    mine.closing = true;
    for (auto& queue : mine.inbox) queue.clear();
    mine.inbox_bytes = 0;
    if (!mine.over) mine.over = closed_by("this side");
    if (!other.over) other.over = closed_by("the other side");
    wake_.notify_one();
  }
  /// The handle is gone: as close(), and a side that was never started has nobody to tell.
  void drop(int side) {
    close(side);
    const std::lock_guard lock(mutex_);
    if (!sides_[side].started) sides_[side].done = true;
    wake_.notify_one();
  }
  void run() {
    std::unique_lock lock(mutex_);
    while (!(sides_[0].done && sides_[1].done)) {
      const bool first = deliver(lock, 0);
      const bool second = deliver(lock, 1);
      if (!first && !second && !(sides_[0].done && sides_[1].done)) wake_.wait(lock);
    }
  }
  const Side& side(int index) const { return sides_[index]; }

 private:
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
  std::condition_variable wake_;
  std::array<Side, 2> sides_;
};

/// Joins the thread when both ends are gone, unless it is that very thread which drops the last of them.
class Executor {
 public:
  explicit Executor(std::shared_ptr<Pair> pair) : thread_([pair = std::move(pair)] { pair->run(); }) {}
  ~Executor() {
    if (thread_.get_id() == std::this_thread::get_id()) {
      thread_.detach();
    } else {
      thread_.join();
    }
  }
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

 private:
  std::thread thread_;
};

class InprocConnection final : public Connection {
 public:
  InprocConnection(std::shared_ptr<Pair> pair, std::shared_ptr<Executor> executor, int side)
      : pair_(std::move(pair)), executor_(std::move(executor)), side_(side) {
    peer_.address = "inproc";
  }
  ~InprocConnection() override { pair_->drop(side_); }
  InprocConnection(const InprocConnection&) = delete;
  InprocConnection& operator=(const InprocConnection&) = delete;

  void start(std::shared_ptr<Receiver> receiver) override { pair_->start(side_, std::move(receiver)); }
  void send(wire::Frame frame, Priority priority) override { pair_->send(side_, std::move(frame), priority); }
  void close() override { pair_->close(side_); }
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
  std::shared_ptr<Executor> executor_;
  int side_;
  PeerIdentity peer_;
};

}  // namespace

std::pair<std::shared_ptr<Connection>, std::shared_ptr<Connection>> make_inproc_pair() {
  auto pair = std::make_shared<Pair>();
  auto executor = std::make_shared<Executor>(pair);
  return {std::make_shared<InprocConnection>(pair, executor, 0), std::make_shared<InprocConnection>(pair, executor, 1)};
}

}  // namespace motley::transport
