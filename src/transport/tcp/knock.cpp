#include "transport/tcp/knock.h"

#include <algorithm>
#include <string_view>

namespace motley::transport {
namespace {

constexpr std::string_view kMagic = "mtlknock";  // no TLS record begins like that
constexpr std::size_t kSignedBytes = 24;         // the magic and 16 random bytes; the rest is their MAC, cut
static_assert(kMagic.size() + 16 == kSignedBytes);

Digest mac_of(const Digest& key, std::span<const std::uint8_t, kKnockBytes> knock) {
  return hmac_sha256(key, std::as_bytes(knock.first<kSignedBytes>()));
}

bool may_be_knock(std::span<const std::byte> bytes) {
  const std::size_t common = std::min(bytes.size(), kMagic.size());
  return std::ranges::equal(bytes.first(common), kMagic.substr(0, common),
                            [](std::byte byte, char letter) { return byte == static_cast<std::byte>(letter); });
}

}  // namespace

Knock make_knock(const Digest& key) {
  Knock knock{};
  std::ranges::transform(kMagic, knock.begin(), [](char letter) { return static_cast<std::uint8_t>(letter); });
  random_bytes(std::span(knock).subspan(kMagic.size(), kSignedBytes - kMagic.size()));
  const Digest mac = mac_of(key, knock);
  std::copy_n(mac.begin(), kKnockBytes - kSignedBytes, knock.begin() + kSignedBytes);
  return knock;
}

Knocks::First Knocks::judge(std::span<const std::byte> bytes) {
  if (!may_be_knock(bytes)) return {Who::stranger, 0};
  if (bytes.size() < kKnockBytes) return {};
  Knock knock{};
  std::ranges::transform(bytes.first(kKnockBytes), knock.begin(), [](std::byte b) { return std::uint8_t(b); });
  const First stranger{Who::stranger, kKnockBytes};
  if (!key_) return stranger;
  const Digest mac = mac_of(*key_, knock);
  const std::span<const std::uint8_t> shown = std::span(knock).subspan(kSignedBytes);
  if (!equal_constant_time(shown, std::span(mac).first(shown.size()))) return stranger;
  Nonce nonce{};
  std::copy_n(knock.begin() + kMagic.size(), nonce.size(), nonce.begin());
  if (!seen_.insert(nonce).second) return stranger;
  order_.push_back(nonce);
  if (order_.size() > kRememberedMax) {
    seen_.erase(order_.front());
    order_.pop_front();
  }
  return {Who::known, kKnockBytes};
}

}  // namespace motley::transport
