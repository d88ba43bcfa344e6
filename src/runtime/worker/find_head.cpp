#include "runtime/worker/find_head.h"

#include <algorithm>
#include <condition_variable>
#include <future>
#include <mutex>
#include <string_view>

#include "base/hex.h"
#include "runtime/lanes.h"
#include "runtime/mailbox.h"
#include "runtime/pairing.h"
#include "transport/multicast.h"
#include "transport/tcp/tcp.h"

namespace motley::runtime {
namespace {

using discovery::FoundHead;
constexpr Duration kAskEvery = std::chrono::milliseconds(1100);  // a head says the same to all once a second at most
constexpr std::chrono::seconds kConnectTime{5};
constexpr std::chrono::seconds kAnswerTime{10};
constexpr std::size_t kKeyLetters = 8;

// What was found, between the thread that hears answers and the one that waits for them.
class Findings {
 public:
  void add(const std::vector<FoundHead>& heads) {
    const std::lock_guard lock(mutex_);
    discovery::add_heads(heads_, heads);
    changed_.notify_all();
  }
  void stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  [[nodiscard]] bool stopped() {
    const std::lock_guard lock(mutex_);
    return stopped_;
  }
  /// Whether nothing more is to be waited for.
  bool wait(Duration at_most, const std::function<bool(const std::vector<FoundHead>&)>& enough) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, at_most, [&] { return stopped_ || enough(heads_); });
  }
  std::vector<FoundHead> take() {
    const std::lock_guard lock(mutex_);
    return std::move(heads_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<FoundHead> heads_;
  bool stopped_ = false;
};

// The joiner's end of the connection. Its calls come one at a time, on threads of the transport.
class Attempt final : public transport::Receiver {
 public:
  Attempt(PairingJoiner& joiner, const transport::Digest& own_spki) : joiner_(joiner), own_spki_(own_spki) {}

  void begin(std::shared_ptr<transport::Connection> connection, const std::shared_ptr<Attempt>& self) {
    connection_ = std::move(connection);
    connection_->start(self);
    connection_->send(control_frame(kPairingRun, joiner_.begin()), transport::Priority::control);
  }
  void on_frame(wire::Frame frame) override {
    const Result<wire::Message> message = wire::decode(frame.body.bytes());
    if (frame.header.type != wire::FrameType::control || !message)
      return end(Error{ErrorCode::protocol, "the head answers with what makes no sense", ""});
    const PairingEnds ends{connection_->peer(), own_spki_};
    if (const auto* share = std::get_if<wire::PairShare>(&*message); share != nullptr && !confirmed_) {
      const Result<wire::PairConfirm> confirm = joiner_.confirm(*share, ends);
      if (!confirm) return end(confirm.error());
      confirmed_ = true;
      connection_->send(control_frame(kPairingRun, *confirm), transport::Priority::control);
    } else if (const auto* paired = std::get_if<wire::Paired>(&*message); paired != nullptr && confirmed_) {
      end(joiner_.token_in(*paired, ends));
    } else if (const auto* bye = std::get_if<wire::Bye>(&*message)) {
      end(Error{ErrorCode::refused, wire::reason_of(*bye), bye->hint});
    } else {
      end(Error{ErrorCode::protocol, "the head answers with " + std::string(wire::name_of(*message)), ""});
    }
  }
  void on_closed(Error error) override { end(std::move(error)); }
  void end(Result<fleet::JoinToken> result) {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    ended_ = true;
    result_.set_value(std::move(result));
  }
  std::future<Result<fleet::JoinToken>> result() { return result_.get_future(); }

 private:
  PairingJoiner& joiner_;
  const transport::Digest own_spki_;
  std::shared_ptr<transport::Connection> connection_;
  bool confirmed_ = false;
  std::mutex mutex_;
  bool ended_ = false;
  std::promise<Result<fleet::JoinToken>> result_;
};

bool comes_before(const FoundHead& a, const FoundHead& b) { return a.name != b.name ? a.name < b.name : a.key < b.key; }

}  // namespace

Result<std::vector<FoundHead>> find_heads(Duration patience,
                                          const std::function<bool(const std::vector<FoundHead>&)>& enough,
                                          StopSource& stop) {
  Findings findings;
  const auto on_datagram = [&findings](transport::Multicast&, const transport::Datagram& datagram) {
    if (const auto message = discovery::parse(datagram.bytes))
      findings.add(discovery::heads_in(*message, datagram.address));
  };
  Result<std::unique_ptr<transport::Multicast>> multicast =
      transport::Multicast::open(transport::kMulticastDns, on_datagram);
  if (!multicast) return multicast.error();
  stop.on_request([&findings] { findings.stop(); });
  const Time until = now() + patience;
  for (bool done = false; !done && now() < until;) {
    for (std::size_t i = 0; i < (*multicast)->networks().size(); ++i) (*multicast)->send(discovery::question(), i);
    done = findings.wait(std::min(kAskEvery, until - now()), enough);
  }
  stop.on_request({});
  multicast->reset();
  if (findings.stopped()) return Error{ErrorCode::interrupted, "interrupted while looking for a head", ""};
  std::vector<FoundHead> heads = findings.take();
  std::ranges::sort(heads, comes_before);
  return heads;
}

std::string name_among(const FoundHead& head, const std::vector<FoundHead>& all) {
  const auto same = std::ranges::count(all, head.name, &FoundHead::name);
  return same < 2 ? head.name : head.name + "/" + to_hex(head.key).substr(0, kKeyLetters);
}

std::vector<FoundHead> heads_named(const std::string& word, const std::vector<FoundHead>& all) {
  std::vector<FoundHead> named;
  for (const FoundHead& head : all) {
    const std::string whole = head.name + "/" + to_hex(head.key);
    if (word == head.name || (word.size() > head.name.size() + 1 && whole.starts_with(word))) named.push_back(head);
  }
  return named;
}

Result<fleet::JoinToken> pair_with(const FoundHead& head, const std::string& code, const std::string& name,
                                   const transport::Identity& own) {
  PairingJoiner joiner(code, name);
  std::vector<transport::Endpoint> endpoints;
  endpoints.reserve(head.addresses.size());
  for (const std::string& address : head.addresses) endpoints.push_back({address, head.port});
  const auto attempt = std::make_shared<Attempt>(joiner, own.spki);
  std::future<Result<fleet::JoinToken>> result = attempt->result();
  transport::TcpOptions options;
  options.identity = own;
  transport::Tcp tcp(options);
  tcp.connect(endpoints, head.key, kConnectTime, [attempt](Result<std::shared_ptr<transport::Connection>> connected) {
    if (!connected) return attempt->end(connected.error());
    attempt->begin(std::move(*connected), attempt);
  });
  if (result.wait_for(kConnectTime + kAnswerTime) != std::future_status::ready) {
    attempt->end(Error{ErrorCode::network, head.name + " does not answer", "motley doctor on both machines"});
  }
  return result.get();
}

}  // namespace motley::runtime
