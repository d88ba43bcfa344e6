#pragma once
// How much of what another worker sent waits to be taken. Value type.

#include <cstddef>

#include "wire/frame.h"

namespace motley::runtime {

class Untaken {
 public:
  static constexpr std::size_t kBytesMax = 256U << 20;  // with what holds them

  /// False, and it is not counted: it would be too much.
  [[nodiscard]] bool put(const wire::Frame& frame) {
    const std::size_t bytes = bytes_of(frame);
    if (bytes > kBytesMax - bytes_) return false;
    bytes_ += bytes;
    return true;
  }
  void take(const wire::Frame& frame) { bytes_ -= bytes_of(frame); }

 private:
  static std::size_t bytes_of(const wire::Frame& frame) { return sizeof frame + frame.body.size(); }

  std::size_t bytes_ = 0;
};

}  // namespace motley::runtime
