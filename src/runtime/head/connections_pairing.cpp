// The part of Connections for machines that have no token and pair by a code instead of showing one.

#include "runtime/auth.h"
#include "runtime/head/connections.h"
#include "runtime/head/head_listener.h"
#include "runtime/lanes.h"

namespace motley::runtime {
namespace {

std::string reason_of(CodeEnd end) {
  if (end == CodeEnd::used) return "is used";
  if (end == CodeEnd::guessed) return "is not good any more, after " + std::to_string(kWrongCodesMax) + " wrong ones";
  return "is ten minutes old";
}

}  // namespace

void Connections::on_pairing_frame(LinkId id, Link& link, const wire::Message& message) {
  if (const auto* pair = std::get_if<wire::Pair>(&message); pair != nullptr && !link.pairing && !link.hello) {
    on_pair(id, link, *pair);
  } else if (const auto* confirm = std::get_if<wire::PairConfirm>(&message); confirm != nullptr && link.pairing) {
    on_pair_confirm(id, link, *confirm);
  } else {
    refuse(id, link, {"protocol", "Pair, then PairConfirm", std::string(wire::name_of(message)), ""});
  }
}

wire::Bye Connections::no_code(std::uint64_t unix_s) const {
  const char* found =
      pairing_.state().good(unix_s) ? "that code is not good any more" : "the head has no code that is good now";
  const char* hint = options_.shows_codes ? "look at the head: it shows another one, in at most a minute"
                                          : "motley invite --pair on the head";
  return {"pairing", {}, found, std::string(hint) + "; or motley join TOKEN"};
}

void Connections::on_pair(LinkId id, Link& link, const wire::Pair& pair) {
  const transport::PeerIdentity& peer = link.connection->peer();
  if (pair.protocol != wire::kProtocolVersion) {
    return refuse(id, link,
                  {"protocol", "protocol " + std::to_string(wire::kProtocolVersion),
                   "protocol " + std::to_string(pair.protocol), "install the same version of motley on both machines"});
  }
  const std::uint64_t unix_s = unix_seconds();
  pairing_.look(unix_s);
  std::optional<std::string> code = pairing_.code(unix_s);
  if (!code || !peer.encrypted) return refuse(id, link, no_code(unix_s));
  link.pairing = std::make_unique<PairingHead>(*code, options_.machine);
  link.code_number = pairing_.number();
  transport::wipe(*code);
  const Result<wire::PairShare> share = link.pairing->answer(pair, {peer, options_.own_spki});
  if (!share) return refuse(id, link, {"protocol", {}, share.error().message, share.error().hint});
  link.connection->send(control_frame(kPairingRun, *share), transport::Priority::control);
}

void Connections::on_pair_confirm(LinkId id, Link& link, const wire::PairConfirm& confirm) {
  // Of several attempts at once each is looked at alone, one after the other: so each costs one of the guesses, and a
  // code lets in one machine.
  const std::uint64_t unix_s = unix_seconds();
  pairing_.look(unix_s);
  if (!pairing_.state().good(unix_s) || pairing_.number() != link.code_number) return refuse(id, link, no_code(unix_s));
  if (!link.pairing->knows(confirm)) {
    on_wrong_code(id, link, unix_s);
  } else {
    pairing_.used(unix_s);
    const std::shared_ptr<transport::Connection> connection = link.connection;
    const fleet::JoinToken invitation = invitations_.invite(connection->peer().spki);
    sink_.take(report::Note{link.pairing->joiner() + " (" + connection->peer().address +
                            ") paired with this run by its code"});
    connection->send(control_frame(kPairingRun, link.pairing->welcome(invitation)), transport::Priority::control);
    links_.erase(id);
    connection->close();
  }
  show_next_code();
}

void Connections::on_wrong_code(LinkId id, const Link& link, std::uint64_t unix_s) {
  const unsigned wrong = pairing_.wrong(unix_s);
  const bool ended = pairing_.state().end != CodeEnd::none;
  sink_.take(report::WorkerChanged{.worker = "a stranger",
                                   .change = "refused",
                                   .reason = "a wrong code from " + link.connection->peer().address + " (" +
                                             std::to_string(wrong) + " of " + std::to_string(kWrongCodesMax) + ")"});
  if (ended && !options_.shows_codes)
    sink_.take(report::Note{"the code " + reason_of(CodeEnd::guessed) + "; motley invite --pair makes another one"});
  refuse(id, link,
         {"wrong-code", "the code that the head shows", "another one",
          "look at it again: it is good for one machine, for ten minutes and until " + std::to_string(kWrongCodesMax) +
              " wrong ones"});
}

void Connections::show_next_code() {
  if (!options_.shows_codes || shut_) return;
  const CodeEnd end = pairing_.state().end;
  const std::optional<PairingCode> next = pairing_.renew(unix_seconds());
  if (!next) return;
  sink_.take(report::CodeShown{.code = next->digits,
                               .addresses = typed_addresses(options_.token),
                               .until_unix_s = next->until_unix_s,
                               .reason = reason_of(end),
                               .verbose = options_.verbose});
}

}  // namespace motley::runtime
