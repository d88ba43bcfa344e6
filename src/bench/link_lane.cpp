#include "bench/link_lane.h"

#include <algorithm>

#include "bench/meter.h"
#include "runtime/auth.h"
#include "runtime/lanes.h"

namespace motley::bench {
namespace {

Error refusal(const wire::Bye& bye) {
  if (bye.code == "lost") {  // what a coordinator says to somebody without a session
    return {ErrorCode::refused, "this token is of a run that trains, expected one of motley bench link",
            "on that machine: motley bench link"};
  }
  return {ErrorCode::refused,
          "refused: " + bye.code + (bye.expected.empty() ? "" : ": expected " + bye.expected) +
              (bye.found.empty() ? "" : ", found " + bye.found),
          bye.hint};
}

}  // namespace

void Shared::interrupt() {
  const std::lock_guard lock(mutex);
  interrupted = true;
  changed.notify_all();
}

void Lane::begin(std::shared_ptr<transport::Connection> connection) {
  connection_ = std::move(connection);
  const wire::Attach attach{
      0, runtime::proof_mac(token_, kLinkRole, connection_->peer(), own_spki_, runtime::Side::joiner)};
  connection_->send(runtime::control_frame(token_.run, attach), transport::Priority::control);
}

void Lane::say(const Word& word, transport::Priority priority) {
  connection_->send(to_frame(word, token_.run), priority);
}

void Lane::ping(transport::Priority priority) {
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(shared_.mutex);
    number = ++last_ping_;
    pings[number] = Clock::now();
  }
  say({Verb::echo, number}, priority);
}

void Lane::close() {
  std::shared_ptr<transport::Connection> connection;
  {
    const std::lock_guard lock(shared_.mutex);
    connection = std::move(connection_);
  }
  if (connection != nullptr) connection->close();
}

void Lane::on_frame(wire::Frame frame) {
  const std::lock_guard lock(shared_.mutex);
  if (connection_ == nullptr) return;
  if (!proven) {
    on_proof(frame);
  } else if (frame.header.type == wire::FrameType::gradient) {
    down = {down.bytes + frame.body.size(), down.frames + 1, Clock::now()};
    return;  // nobody waits for one of many
  } else if (const std::optional<Word> word = parse_word(frame)) {
    if (word->verb == Verb::got) {
      up = {std::max(up.bytes, word->number), up.frames + 1, Clock::now()};
      return;
    }
    on_word(*word);
  } else if (!failure) {
    failure = Error{ErrorCode::protocol, "the other side sent something unexpected", "use the same version of motley"};
  }
  shared_.changed.notify_all();
}

void Lane::on_closed(Error error) {
  const std::lock_guard lock(shared_.mutex);
  if (!failure) failure = std::move(error);
  shared_.changed.notify_all();
}

void Lane::on_proof(const wire::Frame& frame) {
  const Result<wire::Message> message = wire::decode(frame.body.bytes());
  if (frame.header.type != wire::FrameType::control || !message) {
    failure = Error{ErrorCode::protocol, "the other side answered with something unexpected", ""};
  } else if (const auto* reply = std::get_if<wire::ProofReply>(&*message)) {
    proven = runtime::proof_holds(reply->mac, token_, "head", connection_->peer(), own_spki_, runtime::Side::joiner);
    if (!proven) {
      failure = Error{ErrorCode::refused, "the machine that answered could not prove that it knows the token's secret",
                      "ask for a new token there"};
    }
  } else if (const auto* bye = std::get_if<wire::Bye>(&*message)) {
    failure = refusal(*bye);
  } else {
    failure = Error{ErrorCode::protocol, "the other side answered " + std::string(wire::name_of(*message)), ""};
  }
}

void Lane::on_word(const Word& word) {
  const Clock::time_point now = Clock::now();
  if (word.verb == Verb::facts) {
    facts = unpack(word.number);
  } else if (word.verb == Verb::done) {
    done = true;
  } else if (const auto ping = pings.find(word.number); word.verb == Verb::echo && ping != pings.end()) {
    trips_ms.push_back(std::chrono::duration<double, std::milli>(now - ping->second).count());
    pings.erase(ping);
  }
}

}  // namespace motley::bench
