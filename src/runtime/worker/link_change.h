#pragma once
// What became of a worker's link to its coordinator, as the worker sees it.

#include <cstdint>

namespace motley::runtime {

enum class LinkChange : std::uint8_t {
  joined,
  left,  // on its own account; it means to come back
  lost,
};

}  // namespace motley::runtime
