// The side that listens: echoes, counts what it gets, and floods when asked.

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "bench/flood.h"
#include "bench/link.h"
#include "bench/link_frames.h"
#include "runtime/auth.h"
#include "runtime/head/head_listener.h"
#include "runtime/head/train.h"
#include "runtime/lanes.h"

namespace motley::bench {
namespace {

using transport::Connection;
using transport::Priority;

/// What all connections share. Guarded by its mutex.
class House {
 public:
  House(const LinkListenEvents& events, bool once) : events_(events), once_(once) {}
  fleet::JoinToken token;  // what a proof needs of it is set before the first connection is let in
  transport::Digest own_spki{};

  [[nodiscard]] bool enter() {
    const std::lock_guard lock(mutex_);
    if (guests_ >= kLinkGuestsMax) return false;
    ++guests_;
    return true;
  }
  void leave(const std::string& measuring) {
    const std::lock_guard lock(mutex_);
    if (!measuring.empty()) events_.left(measuring);
    if (--guests_ == 0 && once_ && served_) end_locked();
  }
  void measuring(const std::string& peer) {
    const std::lock_guard lock(mutex_);
    served_ = true;
    events_.measuring(peer);
  }
  void end() {
    const std::lock_guard lock(mutex_);
    end_locked();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ended_; });
  }

 private:
  void end_locked() {
    ended_ = true;
    changed_.notify_all();
  }
  const LinkListenEvents& events_;
  const bool once_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t guests_ = 0;
  bool served_ = false, ended_ = false;
};

/// One connection. Its calls come from the transport, one at a time; its flood has a thread of its own.
class Guest final : public transport::Receiver {
 public:
  Guest(House& house, std::shared_ptr<Connection> connection) : house_(house), connection_(std::move(connection)) {}
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;
  ~Guest() override { end_flood(); }

  void on_frame(wire::Frame frame) override {
    if (connection_ == nullptr) return;
    if (!proven_) {
      prove(frame);
    } else if (frame.header.type == wire::FrameType::gradient) {
      got_bytes_ += frame.body.size();
      say({Verb::got, got_bytes_}, Priority::control);
    } else if (const std::optional<Word> word = parse_word(frame)) {
      obey(*word);
    } else {
      connection_->close();
    }
  }
  void on_closed(Error /*error*/) override {
    end_flood();
    connection_.reset();  // and with it the circle of connection and receiver
    if (proven_) house_.leave(measuring_);
    proven_ = false;
  }
  /// REQUIRES that the transport has ended.
  void end_flood() {
    flooding_ = false;
    if (flood_.joinable()) flood_.join();
  }

 private:
  void say(const Word& word, Priority priority) { connection_->send(to_frame(word, house_.token.run), priority); }

  void refuse(const wire::Bye& bye) {
    connection_->send(runtime::control_frame(house_.token.run, bye), Priority::control);
    connection_->close();
  }

  void prove(const wire::Frame& frame) {
    const Result<wire::Message> message = wire::decode(frame.body.bytes());
    const bool control = frame.header.type == wire::FrameType::control;
    const auto* attach = control && message ? std::get_if<wire::Attach>(&*message) : nullptr;
    if (attach == nullptr) {
      return refuse({"protocol", "motley bench link", control && message ? "motley join" : "something else",
                     "this token is for measuring: motley bench link TOKEN"});
    }
    const transport::PeerIdentity& peer = connection_->peer();
    if (frame.header.run != house_.token.run ||
        !runtime::proof_holds(attach->mac, house_.token, kLinkRole, peer, house_.own_spki, runtime::Side::head)) {
      return refuse(
          {"wrong-token", "proof of the token's secret", "something else", "copy the token that is shown now"});
    }
    if (!house_.enter()) {
      return refuse({"full", "at most " + std::to_string(kLinkGuestsMax) + " connections", "one more",
                     "wait until the others are done"});
    }
    proven_ = true;
    connection_->mark_proven();
    const wire::ProofReply reply{runtime::proof_mac(house_.token, "head", peer, house_.own_spki, runtime::Side::head)};
    connection_->send(runtime::control_frame(house_.token.run, reply), Priority::control);
  }

  void obey(const Word& word) {
    switch (word.verb) {
      case Verb::echo:
        return say(word, Priority::control);
      case Verb::flood:
        return start_flood();
      case Verb::stop:
        end_flood();
        return say({Verb::done, 0}, Priority::gradients);
      case Verb::facts:
        measuring_ = connection_->peer().address;
        house_.measuring(measuring_);
        return say({Verb::facts, pack(transport::interface_towards(connection_->peer()))}, Priority::control);
      case Verb::done:
      case Verb::got:
        return connection_->close();
    }
  }

  void start_flood() {
    end_flood();
    flooding_ = true;
    flood_ = std::thread([this, connection = connection_, run = house_.token.run] {
      const Clock::time_point until = Clock::now() + kLinkFloodTime;
      flood_link(*connection, run, kLinkWindowBytes, [this, until] { return flooding_ && Clock::now() < until; });
    });
  }

  using Clock = std::chrono::steady_clock;
  House& house_;
  std::shared_ptr<Connection> connection_;
  bool proven_ = false;
  std::uint64_t got_bytes_ = 0;
  std::string measuring_;  // the address of whoever asked for the facts here
  std::atomic<bool> flooding_{false};
  std::thread flood_;
};

}  // namespace

Status serve_link(const LinkListenOptions& options, const LinkListenEvents& events, runtime::StopSource& stop) {
  House house(events, options.once);
  const transport::Identity identity = transport::make_identity();
  house.token.run = transport::random_u64();
  house.token.plaintext = options.plaintext;
  runtime::renew(house.token, identity);
  house.own_spki = identity.spki;

  transport::Tcp tcp(runtime::tcp_options(house.token, identity));
  const auto accept = [&house](const std::shared_ptr<Connection>& connection) {
    connection->start(std::make_shared<Guest>(house, connection));
  };
  Result<runtime::HeadListener> head_listener =
      runtime::open_listener(tcp, options.listen, runtime::kDefaultPort, accept);
  if (!head_listener) return head_listener.error();
  if (options.listen.empty()) runtime::open_locally(tcp, house.token, accept, *head_listener);
  runtime::lead_to(house.token, *head_listener);
  if (!options.token_file.empty()) {
    if (Status status = runtime::write_token_file(options.token_file, house.token); !status) return status;
  }
  events.opened(house.token);
  stop.on_request([&house] { house.end(); });
  house.wait();
  stop.on_request({});
  *head_listener = {};
  return {};
}

}  // namespace motley::bench
