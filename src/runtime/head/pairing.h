#pragma once
// The code of a run that machines without a token pair by: as an invitation, it is a file in the run's directory that
// another process of the same user may write (docs/formats/pairing.md). One thread at a time.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "motley/result.h"

namespace motley::runtime {

struct PairingCode {
  std::string digits{};
  std::uint64_t until_unix_s = 0;
  std::vector<std::string> addresses{};  // typed_addresses() of its run; only where it is made
};

/// How long a code is good for.
inline constexpr Duration kCodeTime = std::chrono::minutes(10);
/// Wrong codes that a head hears before it pairs with nobody any more.
inline constexpr unsigned kWrongCodesMax = 5;

/// Makes a new code for the run there, in place of any other. Errors: input (no run there, or one in plain text), io.
Result<PairingCode> open_pairing(const std::filesystem::path& run_dir);

class Pairing {
 public:
  explicit Pairing(std::filesystem::path run_dir) : run_dir_(std::move(run_dir)) {}

  /// What the file says now.
  void look();
  /// The code that is good at that time, if there is one.
  [[nodiscard]] std::optional<std::string> code(std::uint64_t unix_s) const;
  [[nodiscard]] bool is_over() const noexcept { return wrong_ >= kWrongCodesMax; }
  /// Somebody confirmed another code. Returns how many did so far; with the last one there is no code any more, and
  /// there will be none as long as this lives.
  unsigned count_wrong();

 private:
  std::filesystem::path run_dir_;
  PairingCode code_{};
  unsigned wrong_ = 0;
};

}  // namespace motley::runtime
