#pragma once
// Samples of one size that lie one behind the other in a source which comes while they are used. Immutable; any thread.

#include <cstdint>
#include <memory>
#include <span>

#include "data/source/source.h"

namespace motley::data {

struct ComingRows {
  std::shared_ptr<const Source> from{};  // null: all are here
  std::uint64_t at = 0;                  // in it
  std::uint64_t stride = 0, bytes = 0;   // from one to the next, and of each

  [[nodiscard]] bool comes() const noexcept { return from != nullptr; }
  [[nodiscard]] bool is_here(std::uint64_t index) const {
    return from == nullptr || from->is_here(at + index * stride, bytes);
  }
  [[nodiscard]] Status wait(std::span<const std::uint64_t> indices) const {
    if (from == nullptr) return {};
    for (const std::uint64_t index : indices) static_cast<void>(is_here(index));  // all are asked for together
    for (const std::uint64_t index : indices)
      if (Status here = from->wait(at + index * stride, bytes); !here) return here;
    return {};
  }
};

}  // namespace motley::data
