#pragma once
// SHA-256 (FIPS 180-4) of what comes in pieces. One thread at a time.

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace motley::data {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void add(std::span<const std::byte> bytes) noexcept;
  /// The digest of everything added, as 64 hexadecimal digits. Ends the object's use.
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace motley::data
