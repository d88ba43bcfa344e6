#pragma once
// MD5 (RFC 1321), because public data sets are published with it. Against damage, not against forgery. Pure.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace motley::data {

class Md5 {
 public:
  void add(std::span<const std::byte> bytes) noexcept;
  /// The digest of everything added, as 32 hexadecimal digits. Ends the object's use.
  std::string finish();

 private:
  void block(const std::byte* bytes) noexcept;

  std::array<std::uint32_t, 4> state_{0x67452301U, 0xEFCDAB89U, 0x98BADCFEU, 0x10325476U};
  std::array<std::byte, 64> pending_{};
  std::uint64_t size_ = 0;
};

}  // namespace motley::data
