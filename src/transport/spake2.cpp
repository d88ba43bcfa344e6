#include "transport/spake2.h"

#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/obj_mac.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/assert.h"
#include "transport/x509.h"

namespace motley::transport {
namespace {

using Number = std::unique_ptr<BIGNUM, Freed<BN_clear_free>>;
using Point = std::unique_ptr<EC_POINT, Freed<EC_POINT_clear_free>>;

// Of the RFC: points whose logarithms nobody knows.
constexpr std::array<std::uint8_t, 33> kM{0x02, 0x88, 0x6e, 0x2f, 0x97, 0xac, 0xe4, 0x6e, 0x55, 0xba, 0x9d,
                                          0xd7, 0x24, 0x25, 0x79, 0xf2, 0x99, 0x3b, 0x64, 0xe1, 0x6e, 0xf3,
                                          0xdc, 0xab, 0x95, 0xaf, 0xd4, 0x97, 0x33, 0x3d, 0x8f, 0xa1, 0x2f};
constexpr std::array<std::uint8_t, 33> kN{0x03, 0xd8, 0xbb, 0xd6, 0xc6, 0x39, 0xc6, 0x29, 0x37, 0xb0, 0x4d,
                                          0x99, 0x7f, 0x38, 0xc3, 0x77, 0x07, 0x19, 0xc6, 0x29, 0xd7, 0x01,
                                          0x4d, 0x49, 0xa2, 0x4b, 0x4f, 0x98, 0xba, 0xa1, 0x29, 0x2b, 0x49};

// P-256. What can fail here fails for want of memory alone, unless it returns something.
class Curve {
 public:
  Curve() : group_(EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1)), scratch_(BN_CTX_secure_new()) {
    MOTLEY_ASSERT(group_ != nullptr && scratch_ != nullptr);
  }
  /// Null: it is none.
  [[nodiscard]] Point read(std::span<const std::uint8_t> bytes) const {
    Point point = make();
    if (EC_POINT_oct2point(group_.get(), point.get(), bytes.data(), bytes.size(), scratch_.get()) == 1) return point;
    return nullptr;
  }
  [[nodiscard]] Spake2::Share write(const Point& point) const {
    Spake2::Share bytes{};
    MOTLEY_ASSERT(EC_POINT_point2oct(group_.get(), point.get(), POINT_CONVERSION_UNCOMPRESSED, bytes.data(),
                                     bytes.size(), scratch_.get()) == bytes.size());
    return bytes;
  }
  // One scalar at a time: for more OpenSSL leaves the ladder that takes the same time for all.
  [[nodiscard]] Point times_generator(const Spake2::Scalar& scalar) const {
    Point product = make();
    const Number number = read_number(scalar);
    MOTLEY_ASSERT(EC_POINT_mul(group_.get(), product.get(), number.get(), nullptr, nullptr, scratch_.get()) == 1);
    return product;
  }
  [[nodiscard]] Point times(const Spake2::Scalar& scalar, const Point& point) const {
    Point product = make();
    const Number number = read_number(scalar);
    MOTLEY_ASSERT(EC_POINT_mul(group_.get(), product.get(), nullptr, point.get(), number.get(), scratch_.get()) == 1);
    return product;
  }
  [[nodiscard]] Point sum(const Point& a, const Point& b) const {
    Point result = make();
    MOTLEY_ASSERT(EC_POINT_add(group_.get(), result.get(), a.get(), b.get(), scratch_.get()) == 1);
    return result;
  }
  [[nodiscard]] Point difference(const Point& a, Point b) const {
    MOTLEY_ASSERT(EC_POINT_invert(group_.get(), b.get(), scratch_.get()) == 1);
    return sum(a, b);
  }
  [[nodiscard]] bool is_infinity(const Point& point) const {
    return EC_POINT_is_at_infinity(group_.get(), point.get()) == 1;
  }
  /// Of twice as many bits as the order has, so that no scalar is likelier than another.
  [[nodiscard]] Spake2::Scalar reduced(std::span<const std::uint8_t, 64> bytes) const {
    const Number wide(BN_secure_new()), rest(BN_secure_new());
    Spake2::Scalar scalar{};
    MOTLEY_ASSERT(wide && rest && BN_bin2bn(bytes.data(), static_cast<int>(bytes.size()), wide.get()) != nullptr);
    BN_set_flags(wide.get(), BN_FLG_CONSTTIME);
    MOTLEY_ASSERT(BN_nnmod(rest.get(), wide.get(), EC_GROUP_get0_order(group_.get()), scratch_.get()) == 1);
    MOTLEY_ASSERT(BN_bn2binpad(rest.get(), scalar.data(), static_cast<int>(scalar.size())) ==
                  static_cast<int>(scalar.size()));
    return scalar;
  }

 private:
  [[nodiscard]] Point make() const {
    Point point(EC_POINT_new(group_.get()));
    MOTLEY_ASSERT(point != nullptr);
    return point;
  }
  static Number read_number(const Spake2::Scalar& scalar) {
    Number number(BN_secure_new());
    MOTLEY_ASSERT(number && BN_bin2bn(scalar.data(), static_cast<int>(scalar.size()), number.get()) != nullptr);
    BN_set_flags(number.get(), BN_FLG_CONSTTIME);
    return number;
  }

  std::unique_ptr<EC_GROUP, Freed<EC_GROUP_free>> group_;
  std::unique_ptr<BN_CTX, Freed<BN_CTX_free>> scratch_;
};

class Transcript {
 public:
  void add(std::span<const std::uint8_t> piece) {
    for (unsigned shift = 0; shift < 64; shift += 8)
      bytes_.push_back(static_cast<std::uint8_t>(std::uint64_t{piece.size()} >> shift));
    bytes_.insert(bytes_.end(), piece.begin(), piece.end());
  }
  void add(std::string_view text) { add(std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size())); }
  [[nodiscard]] std::span<const std::byte> bytes() const { return std::as_bytes(std::span(bytes_)); }
  ~Transcript() { wipe(bytes_); }
  Transcript() { bytes_.reserve(1024); }
  Transcript(const Transcript&) = delete;
  Transcript& operator=(const Transcript&) = delete;

 private:
  std::vector<std::uint8_t> bytes_;
};

// HKDF without salt, of as many bytes as one block of its second half has.
Digest hkdf(std::span<const std::uint8_t> key, std::string_view info) {
  Digest extracted = hmac_sha256({}, std::as_bytes(key));
  std::vector<std::byte> input;
  for (const char letter : info) input.push_back(static_cast<std::byte>(letter));
  input.push_back(std::byte{1});
  const Digest expanded = hmac_sha256(extracted, input);
  wipe(extracted);
  return expanded;
}

}  // namespace

Spake2::Scalar Spake2::scalar_of(std::string_view code) {
  std::string input = "motley pairing code 1:" + std::string(code);
  std::array<std::uint8_t, 64> wide{};
  unsigned int size = 0;
  MOTLEY_ASSERT(EVP_Digest(input.data(), input.size(), wide.data(), &size, EVP_sha512(), nullptr) == 1);
  MOTLEY_ASSERT(size == wide.size());
  Scalar scalar = Curve().reduced(wide);
  wipe(wide);
  wipe(input);
  return scalar;
}

Spake2::Scalar Spake2::random_scalar() {
  const Curve curve;
  Scalar scalar{};
  do {
    std::array<std::uint8_t, 64> wide{};
    random_bytes(wide);
    scalar = curve.reduced(wide);
    wipe(wide);
  } while (std::ranges::all_of(scalar, [](std::uint8_t byte) { return byte == 0; }));
  return scalar;
}

Spake2::Spake2(Role role, const Scalar& code, const Scalar& own) : role_(role), code_(code), own_(own) {
  const Curve curve;
  const Point mask = curve.times(code_, curve.read(role == Role::a ? kM : kN));
  share_ = curve.write(curve.sum(curve.times_generator(own_), mask));
}

Spake2::Keys::~Keys() {
  wipe(shared);
  wipe(confirm_a);
  wipe(confirm_b);
}

std::optional<Spake2::Keys> Spake2::finish(std::span<const std::uint8_t> their_share, const Context& context) const {
  constexpr std::uint8_t kUncompressed = 4;
  if (their_share.size() != share_.size() || their_share.front() != kUncompressed) return std::nullopt;
  const Curve curve;
  const Point theirs = curve.read(their_share);
  if (!theirs) return std::nullopt;
  const Point unmasked = curve.difference(theirs, curve.times(code_, curve.read(role_ == Role::a ? kN : kM)));
  if (curve.is_infinity(unmasked)) return std::nullopt;
  Share shared = curve.write(curve.times(own_, unmasked));

  Transcript transcript;
  transcript.add(context.a);
  transcript.add(context.b);
  transcript.add(role_ == Role::a ? std::span<const std::uint8_t>(share_) : their_share);
  transcript.add(role_ == Role::a ? their_share : std::span<const std::uint8_t>(share_));
  transcript.add(shared);
  transcript.add(code_);
  wipe(shared);
  Digest hash = sha256(transcript.bytes());
  Keys keys;
  std::copy_n(hash.begin(), keys.shared.size(), keys.shared.begin());
  Digest confirming = hkdf(std::span(hash).last<16>(), "ConfirmationKeys" + context.binding);
  keys.confirm_a = hmac_sha256(std::span(confirming).first<16>(), transcript.bytes());
  keys.confirm_b = hmac_sha256(std::span(confirming).last<16>(), transcript.bytes());
  wipe(hash);
  wipe(confirming);
  return keys;
}

}  // namespace motley::transport
