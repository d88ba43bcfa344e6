#include "runtime/head/pairing.h"

#include <charconv>
#include <system_error>

#include "fleet/token.h"
#include "runtime/head/head_listener.h"
#include "runtime/head/invitations.h"
#include "runtime/pairing.h"
#include "store/secret_file.h"
#include "transport/crypto.h"

namespace motley::runtime {
namespace {

namespace fs = std::filesystem;
constexpr const char* kPairingFile = "pairing";
constexpr std::uint64_t kPairingBytesMax = 64;

// "123456 1764211000": a code, and until when.
std::optional<PairingCode> parse_pairing(const std::string& text) {
  const std::size_t space = text.find(' ');
  if (space != kCodeDigits) return std::nullopt;
  const std::optional<std::string> digits = read_code(text.substr(0, space));
  PairingCode code;
  const char* const begin = text.data() + space + 1;
  const char* const end = text.data() + text.size();
  const auto [at, problem] = std::from_chars(begin, end, code.until_unix_s);
  if (!digits || problem != std::errc{} || (at != end && *at != '\n')) return std::nullopt;
  code.digits = *digits;
  return code;
}

std::string line_of(const PairingCode& code) { return code.digits + " " + std::to_string(code.until_unix_s) + "\n"; }

PairingCode new_code(std::uint64_t unix_s) { return {make_code(), unix_s + kCodeSeconds}; }

}  // namespace

Result<PairingCode> open_pairing(const fs::path& run_dir) {
  const Result<std::string> text = store::read_secret_file(run_dir / "token", fleet::JoinToken::kTextBytesMax);
  if (!text) {
    return Error{ErrorCode::input, "expected the directory of a run, found no token in " + run_dir.string(),
                 "--run DIR; motley train prints where its run is"};
  }
  const Result<fleet::JoinToken> token = fleet::parse_token(*text);
  if (!token) return token.error();
  if (token->plaintext) {
    return Error{ErrorCode::input, "a run in plain text pairs with nobody: whoever listens would have its token",
                 "motley train without --plaintext; or motley join TOKEN"};
  }
  PairingCode code = new_code(unix_seconds());
  if (Status written = store::write_secret_file(run_dir / kPairingFile, line_of(code)); !written)
    return written.error();
  code.addresses = typed_addresses(*token);
  return code;
}

void Pairing::take(PairingCode code, std::uint64_t unix_s) {
  transport::wipe(digits_);
  digits_ = std::move(code.digits);
  ++number_;
  state_ = decide(state_, CodeMade{code.until_unix_s}, unix_s).state;
}

// What could not be written or removed is in the file still, and was seen there: it does not come back.
void Pairing::look(std::uint64_t unix_s) {
  const Result<std::string> text = store::read_secret_file(run_dir_ / kPairingFile, kPairingBytesMax);
  const std::string now = text ? *text : std::string();
  if (now == seen_) return;
  seen_ = now;
  take(parse_pairing(now).value_or(PairingCode{}), unix_s);
}

std::optional<std::string> Pairing::code(std::uint64_t unix_s) const {
  if (!state_.good(unix_s)) return std::nullopt;
  return digits_;
}

void Pairing::used(std::uint64_t unix_s) {
  state_ = decide(state_, CodeUsed{}, unix_s).state;
  end();
}

unsigned Pairing::wrong(std::uint64_t unix_s) {
  state_ = decide(state_, CodeWrong{}, unix_s).state;
  if (state_.end != CodeEnd::none) end();
  return state_.wrong;
}

// For the next process of this run as well.
void Pairing::end() {
  transport::wipe(digits_);
  std::error_code failed;
  fs::remove(run_dir_ / kPairingFile, failed);
  if (!failed) seen_.clear();
}

std::optional<PairingCode> Pairing::renew(std::uint64_t unix_s) {
  const CodeDecision decision = decide(state_, CodeTick{}, unix_s);
  state_ = decision.state;
  if (!decision.make_another) return std::nullopt;
  look(unix_s);
  if (!state_.good(unix_s)) {
    const PairingCode made = new_code(unix_s);
    const std::string line = line_of(made);
    if (store::write_secret_file(run_dir_ / kPairingFile, line)) seen_ = line;
    take(made, unix_s);
  }
  return PairingCode{digits_, state_.until_unix_s};
}

}  // namespace motley::runtime
