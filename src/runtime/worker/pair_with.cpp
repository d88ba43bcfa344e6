#include "runtime/worker/pair_with.h"

#include <charconv>
#include <future>
#include <mutex>
#include <system_error>

#include "runtime/head/train.h"
#include "runtime/lanes.h"
#include "runtime/pairing.h"

namespace motley::runtime {
namespace {

constexpr std::chrono::seconds kConnectTime{5};
constexpr std::chrono::seconds kAnswerTime{10};

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

}  // namespace

Result<transport::Endpoint> head_endpoint(const std::string& text) {
  transport::Endpoint endpoint{text, kDefaultPort};
  const std::size_t bracket = text.starts_with('[') ? text.find(']') : std::string::npos;
  const std::size_t colon = text.find(':', bracket == std::string::npos ? 0 : bracket);
  const bool has_port = colon != std::string::npos && text.find(':', colon + 1) == std::string::npos;
  if (has_port) {
    const char* const end = text.data() + text.size();
    const auto [at, problem] = std::from_chars(text.data() + colon + 1, end, endpoint.port);
    if (problem != std::errc{} || at != end || endpoint.port == 0) endpoint.host.clear();
    endpoint.host = endpoint.host.substr(0, colon);
  }
  if (bracket != std::string::npos && endpoint.host.size() == bracket + 1) endpoint.host = text.substr(1, bracket - 1);
  if (endpoint.host.empty() || endpoint.host.find_first_of("[]/\\ ") != std::string::npos) {
    return Error{ErrorCode::usage, "expected ADDRESS or ADDRESS:PORT of a head, found '" + text + "'",
                 "motley join 192.168.1.7 123456, with the address and the code that the head prints"};
  }
  return endpoint;
}

Result<fleet::JoinToken> pair_with(const transport::Endpoint& head, const std::string& code, const std::string& name,
                                   const transport::Identity& own) {
  PairingJoiner joiner(code, name);
  const auto attempt = std::make_shared<Attempt>(joiner, own.spki);
  std::future<Result<fleet::JoinToken>> result = attempt->result();
  transport::TcpOptions options;
  options.identity = own;
  transport::Tcp tcp(options);
  tcp.connect({head}, std::nullopt, kConnectTime, [attempt](Result<std::shared_ptr<transport::Connection>> connected) {
    if (!connected) return attempt->end(connected.error());
    attempt->begin(std::move(*connected), attempt);
  });
  if (result.wait_for(kConnectTime + kAnswerTime) != std::future_status::ready) {
    attempt->end(Error{ErrorCode::network, head.host + " does not answer", "motley doctor on both machines"});
  }
  return result.get();
}

}  // namespace motley::runtime
