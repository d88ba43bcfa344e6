#include "runtime/head/pairing.h"

#include <charconv>
#include <system_error>

#include "fleet/token.h"
#include "runtime/head/door.h"
#include "runtime/head/invitations.h"
#include "runtime/pairing.h"
#include "store/secret_file.h"

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
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(kCodeTime).count();
  PairingCode code{make_code(), unix_seconds() + static_cast<std::uint64_t>(seconds), typed_addresses(*token)};
  const std::string line = code.digits + " " + std::to_string(code.until_unix_s) + "\n";
  if (Status written = store::write_secret_file(run_dir / kPairingFile, line); !written) return written.error();
  return code;
}

void Pairing::look() {
  if (is_over()) return;
  const Result<std::string> text = store::read_secret_file(run_dir_ / kPairingFile, kPairingBytesMax);
  code_ = text ? parse_pairing(*text).value_or(PairingCode{}) : PairingCode{};
}

std::optional<std::string> Pairing::code(std::uint64_t unix_s) const {
  if (is_over() || code_.digits.empty() || unix_s >= code_.until_unix_s) return std::nullopt;
  return code_.digits;
}

unsigned Pairing::count_wrong() {
  ++wrong_;
  if (is_over()) {
    std::error_code ignored;  // it is not looked at any more
    fs::remove(run_dir_ / kPairingFile, ignored);
  }
  return wrong_;
}

}  // namespace motley::runtime
