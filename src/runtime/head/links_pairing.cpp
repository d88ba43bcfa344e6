// The part of Links for machines that have no token and pair by a code instead of showing one.

#include "runtime/auth.h"
#include "runtime/head/links.h"
#include "runtime/lanes.h"

namespace motley::runtime {
namespace {

constexpr const char* kAnotherWay = "motley join TOKEN, with the token that the head prints";

wire::Bye not_now(bool over) {
  if (over) {
    return {"pairing",
            {},
            "the head has heard " + std::to_string(kWrongCodesMax) +
                " wrong codes and pairs with nobody until it is started again",
            std::string("start it again with --resume --pair; or ") + kAnotherWay};
  }
  return {"pairing",
          {},
          "the head has no code that is still good",
          std::string("motley invite --pair on the head; or ") + kAnotherWay};
}

}  // namespace

void Links::on_pairing_frame(LinkId id, Link& link, const wire::Message& message) {
  if (const auto* pair = std::get_if<wire::Pair>(&message); pair != nullptr && !link.pairing && !link.hello) {
    on_pair(id, link, *pair);
  } else if (const auto* confirm = std::get_if<wire::PairConfirm>(&message); confirm != nullptr && link.pairing) {
    on_pair_confirm(id, link, *confirm);
  } else {
    refuse(id, link, {"protocol", "Pair, then PairConfirm", std::string(wire::name_of(message)), ""});
  }
}

void Links::on_pair(LinkId id, Link& link, const wire::Pair& pair) {
  const transport::PeerIdentity& peer = link.connection->peer();
  pairing_.look();
  const std::optional<std::string> code = pairing_.code(unix_seconds());
  if (pair.protocol != wire::kProtocolVersion) {
    return refuse(id, link,
                  {"protocol", "protocol " + std::to_string(wire::kProtocolVersion),
                   "protocol " + std::to_string(pair.protocol), "install the same version of motley on both machines"});
  }
  if (!code || !peer.encrypted) return refuse(id, link, not_now(pairing_.is_over()));
  link.pairing = std::make_unique<PairingHead>(*code, options_.machine);
  const Result<wire::PairShare> share = link.pairing->answer(pair, {peer, options_.own_spki});
  if (!share) return refuse(id, link, {"protocol", {}, share.error().message, share.error().hint});
  link.connection->send(control_frame(kPairingRun, *share), transport::Priority::control);
}

void Links::on_pair_confirm(LinkId id, Link& link, const wire::PairConfirm& confirm) {
  // Of several attempts at once each is looked at alone, one after the other: so each costs one of the guesses.
  pairing_.look();
  if (pairing_.code(unix_seconds()) != link.pairing->code()) return refuse(id, link, not_now(pairing_.is_over()));
  const std::string address = link.connection->peer().address;
  if (!link.pairing->knows(confirm)) {
    const unsigned wrong = pairing_.count_wrong();
    std::string what =
        "a wrong code from " + address + " (" + std::to_string(wrong) + " of " + std::to_string(kWrongCodesMax) + ")";
    if (pairing_.is_over()) {
      what += "; it pairs with nobody any more, until it is started again. Its token stays good";
    }
    sink_.take(report::WorkerChanged{.worker = "a stranger", .change = "refused", .reason = what});
    return refuse(id, link,
                  {"wrong-code", "the code that the head shows", "another one",
                   "look at it again: " + std::to_string(kWrongCodesMax) + " wrong ones, and it pairs no more"});
  }
  sink_.take(report::Note{link.pairing->joiner() + " (" + address + ") paired with this run by its code"});
  const std::shared_ptr<transport::Connection> connection = link.connection;
  connection->send(control_frame(kPairingRun, link.pairing->welcome(options_.token)), transport::Priority::control);
  links_.erase(id);
  connection->close();
}

}  // namespace motley::runtime
