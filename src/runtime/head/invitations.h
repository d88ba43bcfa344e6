#pragma once
// Whom the tokens of a run let in: the one that the head printed, those that `motley invite --once` and pairing made
// since, and those that were revoked. Other processes of the same user write to the run's directory and this one looks
// there: `invitations/<number>`, and lines in `revoked` (docs/formats/token.md). One thread at a time.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"
#include "fleet/token.h"
#include "motley/result.h"
#include "transport/crypto.h"

namespace motley::runtime {

class Invitations {
 public:
  /// What a machine is known by once it is in: its public key; without TLS there is none.
  using Key = transport::Digest;

  Invitations(fleet::JoinToken own, std::filesystem::path run_dir);

  /// The token of this number, if there is one; what was invited since the last call as well. Valid until the next one.
  [[nodiscard]] const fleet::JoinToken* find(std::uint64_t id);
  /// A token that lets in the machine with this key and no other, as long as the run. If it cannot be written, as long
  /// as this process. REQUIRES a key.
  fleet::JoinToken invite(const Key& key);
  /// Somebody with this key has proven that token's secret. `same_user`: on this machine, whoever started this process:
  /// who shows no key and could read the run's own token. Errors: refused, with what is wrong for both sides: it has
  /// expired and the key was not in before, it was for one machine and is used, the token or the key is revoked.
  Status admit(std::uint64_t id, const Key& key, std::uint64_t unix_s, bool same_user = false);

  struct Revoked {
    std::vector<std::uint64_t> tokens;
    std::vector<std::string> workers;
  };
  /// What was revoked since the last call; cheap where nothing was.
  Revoked revoked_now();
  /// Nobody with this key comes in again, whatever its token.
  void shut_out(const Key& key);
  /// Whether a worker that has no key, and is known by its name alone, was sent away.
  [[nodiscard]] bool is_sent_away(const Key& key, const std::string& name) const;

 private:
  struct Invitation {
    fleet::JoinToken token;
    bool once = false;
    std::set<Key> admitted{};
  };
  void keep(const Invitation& invitation) const;
  Revoked read_revoked();

  const fleet::JoinToken own_;
  std::filesystem::path run_dir_;
  std::map<std::uint64_t, Invitation> known_;
  std::set<std::uint64_t> revoked_tokens_;
  std::set<Key> revoked_keys_;
  std::vector<std::string> revoked_workers_;
  std::uint64_t revoked_bytes_ = 0;  // of the file, that were read
};

/// Whether one of the words is this worker's name, or that of its machine.
bool names(std::span<const std::string> words, const std::string& worker);

/// The calendar's time, which tokens are dated by.
std::uint64_t unix_seconds();
/// What a token says that is good for so long from now; 0, as long as the run, where nobody said.
std::uint64_t expiry_of(std::optional<Duration> good_for);

/// Makes a token beside the one in `run_dir`, for one machine; the head that trains there learns of it when it is
/// shown. Errors: input (no run there), io.
Result<fleet::JoinToken> invite_once(const std::filesystem::path& run_dir, std::optional<Duration> good_for);

/// What a run's directory knows of its guests besides its token: for the next run of the same launch, which has the
/// same token and other files.
struct GuestList {
  std::map<std::string, std::string> invitations{};  // by the name of their file
  std::string revoked{};
};
/// As far as it can be read.
GuestList guest_list(const std::filesystem::path& run_dir);
/// Beside what is there. Errors: io.
Status write_guest_list(const GuestList& guests, const std::filesystem::path& run_dir);

/// Takes back a token, or sends a worker away: `what` is a token's text, the name of a machine or of a worker. Errors:
/// input (no run there, a token of another run, no name), io.
Status revoke(const std::filesystem::path& run_dir, const std::string& what);

}  // namespace motley::runtime
