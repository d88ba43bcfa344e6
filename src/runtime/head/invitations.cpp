#include "runtime/head/invitations.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/assert.h"
#include "base/format.h"
#include "base/hex.h"
#include "store/secret_file.h"
#include "transport/crypto.h"
#include "wire/limits.h"
#include "wire/utf8.h"

namespace motley::runtime {
namespace {

namespace fs = std::filesystem;

constexpr const char* kInvitations = "invitations";
constexpr const char* kRevoked = "revoked";
constexpr std::uint64_t kRevokedBytesMax = 1U << 20;
constexpr std::size_t kKeysMax = 4096;         // of a token: far more than workers of a run
constexpr std::size_t kInvitationsMax = 4096;  // that are handed on to the next run
constexpr std::uint64_t kInvitationBytesMax = fleet::JoinToken::kTextBytesMax + 128;

std::string hex_of(std::uint64_t value) { return formatted("%016llx", static_cast<unsigned long long>(value)); }

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (text.size() != 16 || problem != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<transport::Digest> key_of(std::string_view text) {
  transport::Digest key{};
  if (!from_hex(text, key)) return std::nullopt;
  return key;
}

bool is_none(const transport::Digest& key) { return key == transport::Digest{}; }

Error refused(std::string found, std::string hint) { return {ErrorCode::refused, std::move(found), std::move(hint)}; }

// Words of one line: `kind` and what follows it.
std::pair<std::string_view, std::string_view> split(std::string_view line) {
  const std::size_t space = std::min(line.find(' '), line.size());
  return {line.substr(0, space), line.substr(std::min(space + 1, line.size()))};
}

// As the run's, with a number and a secret of its own, for as long as the run.
fleet::JoinToken another(fleet::JoinToken token) {
  token.id = transport::random_u64();
  token.expires_unix_s = 0;
  transport::random_bytes(token.secret);
  return token;
}

Status write_invitation(const fs::path& run_dir, const std::string& name, const std::string& text) {
  std::error_code failed;
  fs::create_directories(run_dir / kInvitations, failed);
  if (failed) return Error{ErrorCode::io, (run_dir / kInvitations).string() + ": " + failed.message(), ""};
  return store::write_secret_file(run_dir / kInvitations / name, text);
}

Result<fleet::JoinToken> token_of(const fs::path& run_dir) {
  Result<std::string> text = store::read_secret_file(run_dir / "token", fleet::JoinToken::kTextBytesMax);
  if (!text) {
    return Error{ErrorCode::input, run_dir.string() + ": there is no run with a token",
                 "motley train first; then --run DIR, its directory"};
  }
  return fleet::parse_token(*text);
}

}  // namespace

Invitations::Invitations(fleet::JoinToken own, fs::path run_dir) : own_(std::move(own)), run_dir_(std::move(run_dir)) {
  known_[own_.id].token = own_;
  // Who was sent away before is gone already. Keys and tokens stay out, and names where there is no key.
  static_cast<void>(read_revoked());
}

const fleet::JoinToken* Invitations::find(std::uint64_t id) {
  if (revoked_tokens_.contains(id)) return nullptr;
  if (const auto known = known_.find(id); known != known_.end()) return &known->second.token;
  const Result<std::string> text = store::read_secret_file(run_dir_ / kInvitations / hex_of(id), kInvitationBytesMax);
  if (!text) return nullptr;
  // The token, and below it the key that it let in.
  const std::size_t line = std::min(text->find('\n'), text->size());
  const Result<fleet::JoinToken> token = fleet::parse_token(std::string_view(*text).substr(0, line));
  if (!token || token->id != id || token->run != own_.run) return nullptr;
  Invitation& invitation = known_[id];
  invitation = {.token = *token, .once = true};
  const std::string_view rest = std::string_view(*text).substr(std::min(line + 1, text->size()));
  if (const auto key = key_of(rest.substr(0, rest.find('\n')))) invitation.admitted.insert(*key);
  return &invitation.token;
}

void Invitations::keep(const Invitation& invitation) const {
  std::string text = fleet::to_text(invitation.token) + "\n";
  for (const Key& key : invitation.admitted) text += to_hex(key) + "\n";
  // If it cannot be written, it is so for as long as this process lives.
  static_cast<void>(write_invitation(run_dir_, hex_of(invitation.token.id), text));
}

fleet::JoinToken Invitations::invite(const Key& key) {
  MOTLEY_ASSERT(!is_none(key));
  fleet::JoinToken token = another(own_);
  Invitation& invitation = known_[token.id] = {.token = token, .once = true, .admitted = {key}};
  keep(invitation);
  return token;
}

Status Invitations::admit(std::uint64_t id, const Key& key, std::uint64_t unix_s, bool same_user) {
  const char* again = "ask for another: motley invite --once, or the token that the head prints";
  const auto found = known_.find(id);
  if (found == known_.end() || revoked_tokens_.contains(id)) return refused("a token that was revoked", again);
  if (!is_none(key) && revoked_keys_.contains(key)) return refused("a machine that was sent away", "");
  Invitation& invitation = found->second;
  // The head's own user could read its token, and comes without a key.
  const bool is_own = same_user && is_none(key) && !invitation.admitted.empty();
  if (is_own || (!is_none(key) && invitation.admitted.contains(key))) return {};
  if (invitation.once && !invitation.admitted.empty())
    return refused("a token for one machine that has let one in", again);
  const std::uint64_t expires = invitation.token.expires_unix_s;
  if (expires != 0 && unix_s >= expires) return refused("a token that has expired", again);
  if (invitation.admitted.size() < kKeysMax && (invitation.once || !is_none(key))) {
    invitation.admitted.insert(key);
    if (invitation.once) keep(invitation);
  }
  return {};
}

Invitations::Revoked Invitations::revoked_now() {
  std::error_code none;
  const std::uintmax_t size = fs::file_size(run_dir_ / kRevoked, none);
  if (none || size == revoked_bytes_) return {};
  return read_revoked();
}

Invitations::Revoked Invitations::read_revoked() {
  Revoked news;
  const Result<std::string> text = store::read_secret_file(run_dir_ / kRevoked, kRevokedBytesMax);
  if (!text || text->size() <= revoked_bytes_) return news;
  std::string_view rest = std::string_view(*text).substr(revoked_bytes_);
  revoked_bytes_ = text->size();
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const auto [kind, what] = split(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (const auto id = kind == "token" ? number_of(what) : std::nullopt) {
      if (revoked_tokens_.insert(*id).second) news.tokens.push_back(*id);
    } else if (const auto key = kind == "key" ? key_of(what) : std::nullopt) {
      revoked_keys_.insert(*key);
    } else if (kind == "worker" && !what.empty()) {
      news.workers.emplace_back(what);
      revoked_workers_.emplace_back(what);
    }
  }
  return news;
}

bool names(std::span<const std::string> words, const std::string& worker) {
  return std::ranges::any_of(words,
                             [&](const std::string& word) { return worker == word || worker.starts_with(word + "/"); });
}

bool Invitations::is_sent_away(const Key& key, const std::string& name) const {
  return is_none(key) && names(revoked_workers_, name);
}

void Invitations::shut_out(const Key& key) {
  if (is_none(key) || !revoked_keys_.insert(key).second) return;
  // For the next process of this run. Without it, the key is out for as long as this one lives.
  static_cast<void>(store::append_secret_line(run_dir_ / kRevoked, "key " + to_hex(key), kRevokedBytesMax));
}

std::uint64_t unix_seconds() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(since).count());
}

std::uint64_t expiry_of(std::optional<Duration> good_for) {
  if (!good_for) return 0;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(*good_for).count();
  return unix_seconds() + static_cast<std::uint64_t>(seconds);
}

Result<fleet::JoinToken> invite_once(const fs::path& run_dir, std::optional<Duration> good_for) {
  Result<fleet::JoinToken> token = token_of(run_dir);
  if (!token) return token.error();
  fleet::JoinToken made = another(*token);
  made.expires_unix_s = expiry_of(good_for);
  if (Status kept = write_invitation(run_dir, hex_of(made.id), fleet::to_text(made) + "\n"); !kept) return kept.error();
  return made;
}

GuestList guest_list(const fs::path& run_dir) {
  GuestList guests;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(run_dir / kInvitations, none)) {
    const std::string name = entry.path().filename().string();
    const Result<std::string> text = store::read_secret_file(entry.path(), kInvitationBytesMax);
    if (text && number_of(name) && guests.invitations.size() < kInvitationsMax) guests.invitations[name] = *text;
  }
  if (const auto text = store::read_secret_file(run_dir / kRevoked, kRevokedBytesMax)) guests.revoked = *text;
  return guests;
}

Status write_guest_list(const GuestList& guests, const fs::path& run_dir) {
  for (const auto& [name, text] : guests.invitations)
    if (Status written = write_invitation(run_dir, name, text); !written) return written;
  const auto there = store::read_secret_file(run_dir / kRevoked, kRevokedBytesMax);
  const std::string before = there ? *there : std::string();
  if (before.find(guests.revoked) != std::string::npos) return {};
  if (before.size() + guests.revoked.size() > kRevokedBytesMax) {
    return Error{ErrorCode::input, (run_dir / kRevoked).string() + ": expected at most 1 MiB, found more",
                 "--new-token begins anew; then remove that file"};
  }
  return store::write_secret_file(run_dir / kRevoked, before + guests.revoked);
}

Status revoke(const fs::path& run_dir, const std::string& what) {
  const Result<fleet::JoinToken> own = token_of(run_dir);
  if (!own) return own.error();
  std::string line;
  if (what.starts_with(fleet::JoinToken::kPrefix)) {
    const Result<fleet::JoinToken> token = fleet::parse_token(what);
    if (!token) return token.error();
    if (token->run != own->run)
      return Error{ErrorCode::input, "the token is of another run than " + run_dir.string(), "--run DIR of its run"};
    line = "token " + hex_of(token->id);
  } else if (wire::is_utf8(what) && !what.empty() && wire::to_printable(what, wire::kNameCharactersMax) == what) {
    line = "worker " + what;
  } else {
    return Error{ErrorCode::input, "revoke whom? expected a token or the name of a worker", "motley revoke laptop"};
  }
  return store::append_secret_line(run_dir / kRevoked, line, kRevokedBytesMax);
}

}  // namespace motley::runtime
