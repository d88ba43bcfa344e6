#include "runtime/head/connections.h"

#include <algorithm>

#include "base/assert.h"
#include "runtime/auth.h"
#include "runtime/head/backlog.h"
#include "wire/limits.h"

namespace motley::runtime {
namespace {

constexpr Duration kLaneTimeout = std::chrono::seconds(15);  // from Admitted to the data lane
constexpr std::size_t kWaitingFramesMax = 1U << 16;
constexpr std::size_t kBacklogBytesMax = 8U << 20;  // of a connection: as much as the longest control message
// What a session may leave unread: the weights whole and of some steps that went on without it, and the messages of
// many.
constexpr std::size_t kUnreadModelsMax = 4;
constexpr std::size_t kUnreadBytesMax = 64U << 20;
constexpr Duration kRevokedEvery = std::chrono::seconds(1);

/// Without TLS there is none.
std::string key_of(const transport::PeerIdentity& peer) {
  const bool has_key = std::ranges::any_of(peer.spki, [](std::uint8_t byte) { return byte != 0; });
  return has_key ? std::string(peer.spki.begin(), peer.spki.end()) : std::string();
}

}  // namespace

class Connections::LinkReceiver final : public transport::Receiver {
 public:
  LinkReceiver(Connections& connections, LinkId id, const std::weak_ptr<transport::Connection>& connection)
      : mailbox_(connections.mailbox_),
        connections_(connections),
        id_(id),
        backlog_(std::make_shared<Backlog>(kBacklogBytesMax, [connection](bool on) {
          if (const auto open = connection.lock()) open->set_reading(on);
        })) {}
  void on_frame(wire::Frame frame) override {
    const std::size_t bytes = wire::kHeaderBytes + frame.body.size();
    backlog_->arrived(bytes);
    mailbox_->post([&connections = connections_, id = id_, frame = std::move(frame), backlog = backlog_, bytes] {
      connections.on_frame(id, frame);
      backlog->done(bytes);
    });
  }
  void on_closed(Error error) override {
    mailbox_->post(
        [&connections = connections_, id = id_, error = std::move(error)] { connections.on_link_closed(id, error); });
  }

 private:
  std::shared_ptr<Mailbox> mailbox_;  // outlives the links; once stopped, it drops what is posted
  Connections& connections_;
  LinkId id_;
  std::shared_ptr<Backlog> backlog_;
};

void Connections::accept(std::shared_ptr<transport::Connection> connection) {
  mailbox_->post([this, connection = std::move(connection)] { add_link(next_link_++, connection); });
}

void Connections::add_local(wire::Hello hello, std::shared_ptr<transport::Connection> connection,
                            std::shared_ptr<engine::LocalWorker> worker) {
  mailbox_->post([this, hello = std::move(hello), connection = std::move(connection), worker = std::move(worker)] {
    const LinkId id = next_link_++;
    const engine::SessionId session = next_session_++;
    Link& link = links_[id];
    link.connection = connection;
    link.role = LinkRole::control;
    link.hello = hello;
    link.session = session;
    sessions_[session] = {
        .name = hello.name, .local = true, .control = id, .lanes = DataLanes(1), .opened = now(), .worker = worker};
    sessions_[session].lanes.add(0, connection);
    engine_.session_opened(session, hello, engine::Locality::process, now());
    connection->start(std::make_shared<LinkReceiver>(*this, id, connection));
  });
}

void Connections::add_link(LinkId id, const std::shared_ptr<transport::Connection>& connection) {
  if (shut_) {
    connection->close();
    return;
  }
  links_[id].connection = connection;
  connection->start(std::make_shared<LinkReceiver>(*this, id, connection));
}

void Connections::on_frame(LinkId id, const wire::Frame& frame) {
  const auto found = links_.find(id);
  if (shut_ || found == links_.end()) return;
  Link& link = found->second;
  if (link.role == LinkRole::unproven) {
    on_unproven_frame(id, link, frame);
  } else if (link.role == LinkRole::files) {
    on_files_frame(id, frame);
  } else {
    engine_.session_frame(link.session, frame, now());
  }
}

void Connections::on_unproven_frame(LinkId id, Link& link, const wire::Frame& frame) {
  Result<wire::Message> message = wire::decode(frame.body.bytes());
  link.run = frame.header.run;
  if (frame.header.type != wire::FrameType::control || !message) {
    refuse(id, link, {"protocol", "Hello", message ? "a data frame" : message.error().message, ""});
  } else if (std::holds_alternative<wire::Pair>(*message) || link.pairing) {
    on_pairing_frame(id, link, *message);
  } else if (frame.header.run != options_.token.run) {
    refuse(
        id, link,
        {"run", "the run of this coordinator", "a token of another run", "ask for the token that the head prints now"});
  } else if (auto* hello = std::get_if<wire::Hello>(&*message); hello != nullptr && !link.hello) {
    link.hello = std::move(*hello);
    if (link.hello->protocol != wire::kProtocolVersion) {
      refuse(
          id, link,
          {"protocol", "protocol " + std::to_string(wire::kProtocolVersion),
           "protocol " + std::to_string(link.hello->protocol), "install the same version of motley on both machines"});
    } else if (invitations_.find(link.hello->token_id) == nullptr) {
      refuse(id, link, {"wrong-token", "this run's token", "another token", "copy the token that the head prints"});
    }
  } else if (const auto* proof = std::get_if<wire::Proof>(&*message); proof != nullptr && link.hello) {
    on_proof(id, link, *proof);
  } else if (const auto* attach = std::get_if<wire::Attach>(&*message); attach != nullptr && !link.hello) {
    on_attach(id, link, *attach);
  } else {
    refuse(id, link, {"protocol", "Hello, then Proof", std::string(wire::name_of(*message)), ""});
  }
}

void Connections::on_proof(LinkId id, Link& link, const wire::Proof& proof) {
  const transport::PeerIdentity& peer = link.connection->peer();
  const std::uint64_t token_id = link.hello->token_id;
  const fleet::JoinToken* token = invitations_.find(token_id);
  if (token == nullptr || !proof_holds(proof.mac, *token, "join", peer, options_.own_spki, Side::head)) {
    refuse(id, link,
           {"wrong-token", "proof of the token's secret", "something else", "copy the token that the head prints"});
    return;
  }
  if (sessions_.size() >= wire::kSessionsMax && !engine_.has_room(now())) {
    refuse(id, link,
           {"full", "at most " + std::to_string(wire::kSessionsMax) + " workers", "one more", "wait until one leaves"});
    return;
  }
  if (invitations_.is_sent_away(peer.spki, link.hello->name)) {
    refuse(id, link,
           {"wrong-token", "a machine that may come in", "one that was sent away", "ask whoever runs the head"});
    return;
  }
  if (const Status welcome = invitations_.admit(token_id, peer.spki, unix_seconds(), peer.same_machine); !welcome) {
    refuse(id, link, {"wrong-token", "a token that lets it in", welcome.error().message, welcome.error().hint});
    return;
  }
  link.connection->mark_proven();
  const wire::ProofReply reply{proof_mac(*token, "head", peer, options_.own_spki, Side::head)};
  link.connection->send(control_frame(options_.token.run, reply), transport::Priority::control);
  if (std::ranges::count(link.hello->features, kFiles) > 0) return open_files(id, link);
  link.role = LinkRole::control;
  link.session = next_session_++;
  sessions_[link.session] = {.name = link.hello->name, .control = id, .token_id = token_id, .opened = now()};
  engine_.session_opened(link.session, *link.hello,
                         peer.same_machine ? engine::Locality::machine : engine::Locality::network, now(),
                         key_of(peer));
}

void Connections::on_attach(LinkId id, Link& link, const wire::Attach& attach) {
  const transport::PeerIdentity& peer = link.connection->peer();
  const engine::SessionId wanted = attach.fence & 0xFFFFFFFFU;
  const auto session = sessions_.find(wanted);
  const bool same_incarnation = attach.fence >> 32 == options_.incarnation;
  const std::size_t count = attach.count > 0 ? attach.count : 1;
  if (session == sessions_.end() || !same_incarnation || session->second.data_end ||
      !session->second.lanes.waits_for(attach.number, count)) {
    refuse(id, link, {"lost", "a session that waits for its data connection", "none", ""});
    return;
  }
  const bool same_key = links_.at(session->second.control).connection->peer().spki == peer.spki;
  const fleet::JoinToken* token = invitations_.find(session->second.token_id);
  if (!same_key || token == nullptr || !proof_holds(attach.mac, *token, "lane", peer, options_.own_spki, Side::head)) {
    refuse(id, link, {"wrong-token", "proof of the token's secret", "something else", ""});
    return;
  }
  link.connection->mark_proven();
  link.role = LinkRole::data;
  link.session = wanted;
  Session& owner = session->second;
  owner.data.push_back(id);
  if (owner.lanes.count() == 0) owner.lanes = DataLanes(count);
  owner.lanes.add(attach.number, link.connection);
  if (!owner.lanes.complete()) return;
  for (auto& [frame, lane] : owner.waiting) owner.lanes.send(std::move(frame), lane);
  owner.waiting.clear();
  owner.waiting_bytes = 0;
}

void Connections::refuse(LinkId id, const Link& link, const wire::Bye& bye) {
  // Whoever has not proven the secret is counted, not named, and not told the run's number. At most one line a second:
  // strangers must not be able to fill the display.
  ++strangers_;
  if (link.hello && (last_refusal_said_ == Time{} || now() - last_refusal_said_ > std::chrono::seconds(1))) {
    last_refusal_said_ = now();
    sink_.take(report::WorkerChanged{
        .worker = "a stranger",
        .change = "refused",
        .reason = bye.code + ": " + wire::reason_of(bye) + " (" + std::to_string(strangers_) + " so far)"});
  }
  const std::shared_ptr<transport::Connection> connection = link.connection;
  const std::uint64_t its_run = link.run;
  links_.erase(id);
  connection->send(control_frame(its_run, bye), transport::Priority::control);
  connection->close();
}

void Connections::send_away_revoked() {
  if (now() - looked_for_revoked_ < kRevokedEvery) return;
  looked_for_revoked_ = now();
  const Invitations::Revoked revoked = invitations_.revoked_now();
  const wire::Bye bye{"revoked", {}, "this machine was sent away", "ask whoever runs the head"};
  std::vector<LinkId> fetching;
  for (const auto& [id, link] : links_) {
    const bool sent_away =
        link.role == LinkRole::files &&
        (std::ranges::count(revoked.tokens, link.hello->token_id) > 0 || names(revoked.workers, link.hello->name));
    if (sent_away) fetching.push_back(id);
  }
  for (const LinkId id : fetching) end_files(id, bye);
  std::vector<engine::SessionId> away;
  for (const auto& [id, session] : sessions_) {
    if (session.local) continue;
    const bool by_token = std::ranges::count(revoked.tokens, session.token_id) > 0;
    const bool by_name = names(revoked.workers, session.name);
    if (by_token || by_name) away.push_back(id);
    if (by_name) invitations_.shut_out(links_.at(session.control).connection->peer().spki);
  }
  for (const engine::SessionId id : away) {
    links_.at(sessions_.at(id).control)
        .connection->send(control_frame(options_.token.run, bye), transport::Priority::control);
    end_session(id, "it was sent away (motley revoke)", true);
  }
}

void Connections::on_link_closed(LinkId id, const Error& error) {
  const auto found = links_.find(id);
  if (found == links_.end()) return;
  const LinkRole role = found->second.role;
  const engine::SessionId session = found->second.session;
  links_.erase(found);
  if (role == LinkRole::files) {
    if (desk_) desk_->close(id);
  } else if (role == LinkRole::control) {
    end_session(session, error.message, true);
  } else if (role == LinkRole::data) {
    Session& ending = sessions_.at(session);
    ending.lanes = {};
    if (!ending.data_end) ending.data_end = {error.message, now() + kFarewellTime};
  }
}

std::vector<Connections::LinkId> Connections::Session::links() const {
  std::vector<LinkId> all{control};
  all.insert(all.end(), data.begin(), data.end());
  return all;
}

void Connections::end_session(engine::SessionId session, const std::string& why, bool tell_engine) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  const Session gone = std::move(found->second);
  sessions_.erase(found);
  for (const LinkId id : gone.links()) {
    const auto link = links_.find(id);
    if (link == links_.end()) continue;
    const std::shared_ptr<transport::Connection> connection = link->second.connection;
    links_.erase(link);
    connection->close();
  }
  if (tell_engine && !shut_) engine_.session_closed(session, why, now());
}

void Connections::send(engine::SessionId session, wire::Frame frame, engine::Lane lane) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  Session& target = found->second;
  const bool on_control = lane == engine::Lane::control || frame.header.type == wire::FrameType::blob;
  if (on_control) {
    const auto link = links_.find(target.control);
    if (link != links_.end()) link->second.connection->send(std::move(frame), priority_of(lane));
  } else if (target.lanes.complete()) {
    target.lanes.send(std::move(frame), lane);
  } else if (!target.data_end && target.waiting.size() < kWaitingFramesMax) {
    if (target.waiting.empty()) target.opened = now();
    target.waiting_bytes += frame.body.size();
    target.waiting.emplace_back(std::move(frame), lane);
  }
}

std::size_t Connections::queued_bytes(engine::SessionId session) const {
  const auto found = sessions_.find(session);
  if (found == sessions_.end() || found->second.local) return 0;
  return found->second.lanes.queued_bytes() + found->second.waiting_bytes;
}

std::size_t Connections::unread_bytes(const Session& session) const {
  if (session.local) return 0;
  const auto control = links_.find(session.control);
  std::size_t bytes = session.lanes.queued_bytes() + session.waiting_bytes;
  if (control != links_.end()) bytes += control->second.connection->queued_bytes();
  return bytes;
}

void Connections::end_faulty_sessions() {
  const std::size_t model = engine_.server().layout().flat_elements() * sizeof(float);
  std::vector<std::pair<engine::SessionId, std::string>> over;
  for (const auto& [id, session] : sessions_) {
    if (!session.waiting.empty() && now() - session.opened > kLaneTimeout) {
      over.emplace_back(id, "its data connection never came");
    } else if (unread_bytes(session) > kUnreadBytesMax + kUnreadModelsMax * model) {
      over.emplace_back(id, "it does not read what it is sent");
    } else if (session.data_end && now() > session.data_end->deadline) {
      over.emplace_back(id, session.data_end->why);
    }
  }
  for (const auto& [id, why] : over) end_session(id, why, true);
}

void Connections::watch() {
  end_faulty_sessions();
  send_away_revoked();
  show_next_code();
}

void Connections::close_all() {
  shut();
  for (auto& [id, link] : links_) link.connection->close();
}

void Connections::add_traffic(report::WorkerPart& part) {
  for (auto& [id, session] : sessions_) {
    if (session.name != part.worker || session.local) continue;
    transport::Traffic total;
    for (const LinkId link : session.links()) {
      const auto found = links_.find(link);
      if (found == links_.end()) continue;
      const transport::Traffic traffic = found->second.connection->traffic();
      total.sent_bytes += traffic.received_bytes;  // by the worker
      total.received_bytes += traffic.sent_bytes;
    }
    part.sent_bytes = total.sent_bytes - session.reported.sent_bytes;
    part.received_bytes = total.received_bytes - session.reported.received_bytes;
    session.reported = total;
  }
}

std::shared_ptr<engine::LocalWorker> Connections::local_worker(engine::SessionId session) const {
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? nullptr : found->second.worker;
}

std::vector<std::shared_ptr<engine::LocalWorker>> Connections::local_workers() const {
  std::vector<std::shared_ptr<engine::LocalWorker>> workers;
  for (const auto& [id, session] : sessions_)
    if (session.worker != nullptr) workers.push_back(session.worker);
  return workers;
}

bool Connections::has_local(const std::string& name) const {
  return std::ranges::any_of(sessions_,
                             [&](const auto& each) { return each.second.local && each.second.name == name; });
}

}  // namespace motley::runtime
