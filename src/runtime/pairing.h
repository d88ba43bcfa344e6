#pragma once
// How a machine without a token gets one for a code that people carry: the exchange on both sides, without connections
// or clocks. docs/formats/pairing.md. One thread at a time.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fleet/token.h"
#include "runtime/auth.h"
#include "transport/connection.h"
#include "transport/spake2.h"
#include "wire/messages.h"

namespace motley::runtime {

inline constexpr std::size_t kCodeDigits = 6;
inline constexpr std::uint64_t kPairingRun = 0;  // of its frames: who pairs does not know the run's number yet

/// Six digits, as likely as any other six.
std::string make_code();
/// As people write it: spaces and dashes mean nothing. Nothing where it is no code.
std::optional<std::string> read_code(std::string_view text);

/// Both ends of a connection, as one of them sees it.
struct PairingEnds {
  const transport::PeerIdentity& peer;
  const transport::Digest& own_spki;
};

class PairingHead {
 public:
  /// `name`: of this machine.
  PairingHead(std::string_view code, const std::string& name);

  /// REQUIRES it was not called before. Errors: protocol.
  Result<wire::PairShare> answer(const wire::Pair& pair, const PairingEnds& ends);
  [[nodiscard]] const std::string& joiner() const noexcept { return joiner_; }
  /// Whether the other side knows the code. Until it has shown that, it was sent nothing that a guess could be held
  /// against.
  [[nodiscard]] bool knows(const wire::PairConfirm& confirm) const;
  /// REQUIRES knows().
  [[nodiscard]] wire::Paired welcome(const fleet::JoinToken& invitation) const;

 private:
  std::string name_, joiner_{};
  transport::Spake2 exchange_;
  std::optional<transport::Spake2::Keys> keys_{};
};

class PairingJoiner {
 public:
  PairingJoiner(std::string_view code, const std::string& name);

  [[nodiscard]] wire::Pair begin() const;
  /// Errors: protocol.
  Result<wire::PairConfirm> confirm(const wire::PairShare& share, const PairingEnds& ends);
  /// The token, where the head knows the code too, and the token is one of the head's own. Errors: refused, protocol.
  [[nodiscard]] Result<fleet::JoinToken> token_in(const wire::Paired& paired, const PairingEnds& ends) const;

 private:
  std::string name_;
  transport::Spake2 exchange_;
  std::optional<transport::Spake2::Keys> keys_{};
};

}  // namespace motley::runtime
