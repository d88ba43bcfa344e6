#include "transport/tcp/connector.h"

#include <algorithm>
#include <deque>

#include "base/assert.h"
#include "transport/tcp/address.h"

namespace motley::transport {
namespace {

using net::ip::tcp;

constexpr const char* kNobodyListens = "check that the run is up: the machines answer, and no program listens there";

/// Everything runs on one strand, which the socket and its connection share. A step that overran its time is left
/// behind by raising `turn_`: its handler then finds that it speaks of the past.
class Connector final : public Activity, public std::enable_shared_from_this<Connector> {
 public:
  Connector(Hub& hub, std::vector<Endpoint> endpoints, std::optional<Digest> pin, std::chrono::milliseconds timeout,
            ConnectHandler on_done)
      : hub_(hub),
        strand_(net::make_strand(hub.io())),
        resolver_(strand_),
        timer_(strand_),
        endpoints_(endpoints.begin(), endpoints.end()),
        pin_(pin),
        deadline_(SteadyClock::now() + timeout),
        on_done_(std::move(on_done)) {}

  void begin() {
    net::post(strand_, [self = shared_from_this()] { self->next_endpoint(); });
  }
  void stop() override {
    net::post(strand_, [self = shared_from_this()] {
      self->finish(Error{ErrorCode::interrupted, "connecting was given up", ""});
    });
  }

 private:
  void next_endpoint() {
    if (done_) return;
    if (endpoints_.empty()) return finish(all_failed());
    endpoint_ = endpoints_.front();
    endpoints_.pop_front();
    // Time is divided equally among what is left to try.
    endpoint_deadline_ = SteadyClock::now() + remaining_until(deadline_) / static_cast<long>(endpoints_.size() + 1);
    if (is_local(endpoint_)) {
      const Result<SocketAddress> local = local_address(endpoint_);
      if (local) candidates_.push_back({*local, endpoint_.host});
      return next_address();
    }
    NetError error;
    const net::ip::address address = net::ip::make_address(endpoint_.host, error);
    if (!error) {
      const tcp::endpoint only(address, endpoint_.port);
      candidates_.push_back({only, text_of(only)});
      return next_address();
    }
    const std::uint64_t turn = begin_step(endpoint_deadline_, "the name service does not answer");
    resolver_.async_resolve(endpoint_.host, std::to_string(endpoint_.port), tcp::resolver::numeric_service,
                            [self = shared_from_this(), turn](const NetError& failed, const auto& found) {
                              if (self->turn_ != turn) return;
                              if (failed) self->note(text_of(self->endpoint_), reason_of(failed));
                              for (const auto& each : found)
                                self->candidates_.push_back({each.endpoint(), text_of(each.endpoint())});
                              self->next_address();
                            });
  }

  void next_address() {
    if (done_) return;
    if (candidates_.empty()) return next_endpoint();
    candidate_ = candidates_.front();
    candidates_.pop_front();
    const auto share = remaining_until(endpoint_deadline_) / static_cast<long>(candidates_.size() + 1);
    const std::uint64_t turn = begin_step(SteadyClock::now() + share, "no answer");
    socket_.emplace(strand_);
    socket_->async_connect(candidate_.address, [self = shared_from_this(), turn](const NetError& error) {
      if (self->turn_ != turn) return;
      const std::optional<Peer> peer = error ? std::nullopt : peer_of(*self->socket_);
      if (peer) return self->handshake(turn, *peer);
      self->note(self->candidate_.text, error ? reason_of(error) : "gone already, or of another user",
                 error == net::error::connection_refused);
      self->next_address();
    });
  }

  void handshake(std::uint64_t turn, const Peer& peer) {
    core_ = hub_.connected(std::move(*socket_), peer, pin_);
    socket_.reset();
    if (core_ == nullptr) return finish(Error{ErrorCode::interrupted, "connecting was given up", ""});
    core_->handshake([self = shared_from_this(), turn](const Status& status) {
      if (self->turn_ != turn) return;
      if (status) return self->finish(make_connection(std::move(self->core_)));
      self->core_.reset();
      self->note(self->candidate_.text, status.error().message);
      if (!self->answered_ || status.error().code == ErrorCode::refused) self->answered_ = status.error();
      self->next_address();
    });
  }

  /// Arms the timer for the step that begins.
  std::uint64_t begin_step(SteadyClock::time_point until, const char* when_late) {
    const std::uint64_t turn = ++turn_;
    const auto started = SteadyClock::now();
    timer_.expires_at(until);
    timer_.async_wait([self = shared_from_this(), turn, when_late, started](const NetError& cancelled) {
      if (cancelled || self->turn_ != turn || self->done_) return;
      const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(SteadyClock::now() - started);
      const bool resolving = !self->socket_ && !self->core_;
      self->note(resolving ? text_of(self->endpoint_) : self->candidate_.text,
                 std::string(when_late) + " within " + std::to_string(waited.count()) + " ms");
      self->drop_attempt();
      if (resolving) {
        self->next_endpoint();
      } else {
        self->next_address();
      }
    });
    return turn;
  }

  void drop_attempt() {
    ++turn_;
    socket_.reset();
    if (core_ != nullptr) std::exchange(core_, nullptr)->abort({ErrorCode::network, "no answer in time", ""});
  }

  void finish(Result<std::shared_ptr<Connection>> result) {
    if (done_) return;
    done_ = true;
    timer_.cancel();
    resolver_.cancel();
    drop_attempt();
    std::exchange(on_done_, nullptr)(std::move(result));
    hub_.remove(this);
  }

  void note(const std::string& address, const std::string& reason, bool nobody = false) {
    if (is_local(endpoint_) && !endpoints_.empty()) return;
    tried_.push_back(address + ": " + reason);
    deserted_ = deserted_ && nobody;
  }

  Error all_failed() const {
    if (answered_ && (answered_->code == ErrorCode::refused || tried_.size() == 1)) return *answered_;
    if (tried_.empty()) return {ErrorCode::input, "expected an address to connect to, found none", ""};
    std::string message = tried_.size() == 1 ? "cannot connect to " : "cannot connect to any of: ";
    for (const std::string& line : tried_) message += (&line == &tried_.front() ? "" : "; ") + line;
    if (deserted_) return {ErrorCode::network, message, kNobodyListens};
    return {ErrorCode::network, message,
            "check that the run is up, that both machines are in one network, and that no firewall blocks the port"};
  }

  static std::chrono::nanoseconds remaining_until(SteadyClock::time_point until) {
    return std::max<std::chrono::nanoseconds>(until - SteadyClock::now(), std::chrono::nanoseconds(0));
  }

  Hub& hub_;
  net::strand<net::io_context::executor_type> strand_;
  tcp::resolver resolver_;
  net::steady_timer timer_;
  struct Candidate {
    SocketAddress address;
    std::string text;
  };
  std::deque<Endpoint> endpoints_;    // not yet tried
  std::deque<Candidate> candidates_;  // of the endpoint that is tried, likewise
  Endpoint endpoint_;
  Candidate candidate_;
  std::optional<Digest> pin_;
  SteadyClock::time_point deadline_, endpoint_deadline_;
  ConnectHandler on_done_;
  std::optional<Socket> socket_;
  std::shared_ptr<Core> core_;
  std::uint64_t turn_ = 0;
  bool done_ = false;
  std::vector<std::string> tried_;  // "address: what happened"
  bool deserted_ = true;            // at all of them nobody listens
  std::optional<Error> answered_;   // somebody was there, but not whom we look for
};

}  // namespace

void start_connecting(Hub& hub, std::vector<Endpoint> endpoints, std::optional<Digest> pin,
                      std::chrono::milliseconds timeout, ConnectHandler on_done) {
  MOTLEY_ASSERT(on_done != nullptr);
  auto connector = std::make_shared<Connector>(hub, std::move(endpoints), pin, timeout, std::move(on_done));
  MOTLEY_ASSERT(hub.add(connector));
  connector->begin();
}

bool nobody_listens(const Error& error) { return error.hint == kNobodyListens; }

}  // namespace motley::transport
