#pragma once
// SPAKE2 over P-256 with SHA-256, HKDF and HMAC (RFC 9382): two sides that share a short code make keys of it, and who
// stands between them, or plays one of them, has one guess at the code for each attempt and learns nothing else.
// One thread at a time. What is secret is wiped where it ends.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "transport/crypto.h"

namespace motley::transport {

class Spake2 {
 public:
  enum class Role : std::uint8_t { a, b };
  using Share = std::array<std::uint8_t, 65>;  // a point, uncompressed
  /// Most significant byte first; below the order of the group.
  struct Scalar : std::array<std::uint8_t, 32> {
    Scalar() noexcept : std::array<std::uint8_t, 32>{} {}
    Scalar(const Scalar&) = default;
    Scalar& operator=(const Scalar&) = default;
    ~Scalar() { wipe(*this); }
  };

  /// The code as a scalar.
  static Scalar scalar_of(std::string_view code);
  /// One that nobody else knows.
  static Scalar random_scalar();

  /// REQUIRES `own` was drawn for this attempt and serves no other.
  Spake2(Role role, const Scalar& code, const Scalar& own = random_scalar());
  ~Spake2() = default;
  Spake2(const Spake2&) = delete;
  Spake2& operator=(const Spake2&) = delete;

  /// What the other side is sent.
  [[nodiscard]] const Share& share() const noexcept { return share_; }

  /// Who and what both sides believe to talk to and over: where they do not agree on it, neither accepts the other.
  struct Context {
    std::string a, b;     // identities
    std::string binding;  // AAD of the confirmation keys
  };
  struct Keys {
    std::array<std::uint8_t, 16> shared{};  // Ke
    Digest confirm_a{}, confirm_b{};        // what each side shows the other
    Keys() = default;
    Keys(const Keys&) = default;
    Keys& operator=(const Keys&) = default;
    ~Keys();
  };
  /// Nothing where that is no point of the curve, or one that leads to no key.
  [[nodiscard]] std::optional<Keys> finish(std::span<const std::uint8_t> their_share, const Context& context) const;

 private:
  Role role_;
  Scalar code_, own_;
  Share share_{};
};

}  // namespace motley::transport
