#pragma once
// The code of a run that machines without a token pair by: as an invitation, it is a file in the run's directory that
// another process of the same user may write (docs/formats/pairing.md). One thread at a time.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "motley/result.h"
#include "runtime/head/pairing_rule.h"
#include "transport/crypto.h"

namespace motley::runtime {

struct PairingCode {
  std::string digits{};
  std::uint64_t until_unix_s = 0;
  std::vector<std::string> addresses{};  // typed_addresses() of its run; only where it is made
};

/// Makes a new code for the run there, in place of any other. Errors: input (no run there, or one in plain text), io.
Result<PairingCode> open_pairing(const std::filesystem::path& run_dir);

class Pairing {
 public:
  explicit Pairing(std::filesystem::path run_dir) : run_dir_(std::move(run_dir)) {}
  ~Pairing() { transport::wipe(digits_); }
  Pairing(const Pairing&) = delete;
  Pairing& operator=(const Pairing&) = delete;

  /// Takes the code that the file has, where it is another one since the last look.
  void look(std::uint64_t unix_s);
  /// The code, if it is good.
  [[nodiscard]] std::optional<std::string> code(std::uint64_t unix_s) const;
  /// Of the codes so far: another one has another number.
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
  [[nodiscard]] const CodeState& state() const noexcept { return state_; }

  /// Somebody has paired by the code. REQUIRES it is good.
  void used(std::uint64_t unix_s);
  /// Somebody confirmed another code; how many did so far. REQUIRES it is good.
  unsigned wrong(std::uint64_t unix_s);
  /// Where it is time for another code: that of the file, if somebody has made one, or a new one.
  std::optional<PairingCode> renew(std::uint64_t unix_s);

 private:
  void take(PairingCode code, std::uint64_t unix_s);
  void end();

  std::filesystem::path run_dir_;
  std::string seen_;  // in the file, when somebody looked there or wrote it
  std::string digits_;
  CodeState state_{};
  std::uint64_t number_ = 0;
};

}  // namespace motley::runtime
