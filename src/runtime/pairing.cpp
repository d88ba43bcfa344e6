#include "runtime/pairing.h"

#include <algorithm>

#include "base/assert.h"
#include "base/format.h"
#include "wire/frame.h"
#include "wire/limits.h"
#include "wire/utf8.h"

namespace motley::runtime {
namespace {

using transport::Spake2;

// As the other side reads it in a message, so that both put the same into the transcript.
std::string as_read(const std::string& name) {
  return wire::to_printable(wire::to_utf8(name, wire::kNameBytesMax), wire::kNameCharactersMax);
}

std::string with_key(const std::string& name, const transport::Digest& key) {
  return name + std::string(key.begin(), key.end());
}

Spake2::Context context_of(const std::string& joiner, const std::string& head, const PairingEnds& ends, Side side) {
  const transport::Digest& of_head = side == Side::head ? ends.own_spki : ends.peer.spki;
  const transport::Digest& of_joiner = side == Side::head ? ends.peer.spki : ends.own_spki;
  return {with_key(joiner, of_joiner), with_key(head, of_head),
          "motley pairing 1" + std::string(ends.peer.exporter.begin(), ends.peer.exporter.end())};
}

std::vector<std::uint8_t> octets_of(const auto& array) { return {array.begin(), array.end()}; }

Error no_share() {
  return {ErrorCode::protocol, "expected a point of the curve to pair with, found something else",
          "install the same version of motley on both machines"};
}

}  // namespace

std::string make_code() {
  constexpr std::uint64_t kCodes = 1'000'000;
  constexpr std::uint64_t kFairEnd = ~std::uint64_t{0} / kCodes * kCodes;
  std::uint64_t drawn = kFairEnd;
  while (drawn >= kFairEnd) drawn = transport::random_u64();
  return formatted("%06llu", static_cast<unsigned long long>(drawn % kCodes));
}

std::optional<std::string> read_code(std::string_view text) {
  std::string digits;
  for (const char letter : text) {
    if (letter == ' ' || letter == '-' || letter == '\t' || letter == '\r') continue;
    if (letter < '0' || letter > '9' || digits.size() == kCodeDigits) return std::nullopt;
    digits += letter;
  }
  if (digits.size() != kCodeDigits) return std::nullopt;
  return digits;
}

PairingHead::PairingHead(std::string_view code, const std::string& name)
    : name_(as_read(name)), exchange_(Spake2::Role::b, Spake2::scalar_of(code)) {}

Result<wire::PairShare> PairingHead::answer(const wire::Pair& pair, const PairingEnds& ends) {
  MOTLEY_ASSERT(!keys_);
  joiner_ = pair.name;
  keys_ = exchange_.finish(pair.share, context_of(joiner_, name_, ends, Side::head));
  if (!keys_) return no_share();
  return wire::PairShare{name_, octets_of(exchange_.share())};
}

bool PairingHead::knows(const wire::PairConfirm& confirm) const {
  return keys_ && transport::equal_constant_time(confirm.mac, keys_->confirm_a);
}

wire::Paired PairingHead::welcome(const fleet::JoinToken& invitation) const {
  MOTLEY_ASSERT(keys_.has_value());
  return {octets_of(keys_->confirm_b), fleet::to_text(invitation)};
}

PairingJoiner::PairingJoiner(std::string_view code, const std::string& name)
    : name_(as_read(name)), exchange_(Spake2::Role::a, Spake2::scalar_of(code)) {}

wire::Pair PairingJoiner::begin() const { return {wire::kProtocolVersion, name_, octets_of(exchange_.share())}; }

Result<wire::PairConfirm> PairingJoiner::confirm(const wire::PairShare& share, const PairingEnds& ends) {
  keys_ = exchange_.finish(share.share, context_of(name_, share.name, ends, Side::joiner));
  if (!keys_) return no_share();
  return wire::PairConfirm{octets_of(keys_->confirm_a)};
}

Result<fleet::JoinToken> PairingJoiner::token_in(const wire::Paired& paired, const PairingEnds& ends) const {
  if (!keys_ || !transport::equal_constant_time(paired.mac, keys_->confirm_b)) {
    return Error{ErrorCode::refused, "who answered does not know the code: it is not the head that shows it",
                 "look at the code again; somebody in this network may pretend to be that head"};
  }
  Result<fleet::JoinToken> token = fleet::parse_token(paired.token);
  if (!token) return token.error();
  if (token->plaintext || token->spki != ends.peer.spki) {
    return Error{ErrorCode::protocol, "expected a token of the head that was paired with, found one of another",
                 "motley join TOKEN, with the token that the head prints"};
  }
  return token;
}

}  // namespace motley::runtime
