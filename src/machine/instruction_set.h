#pragma once
// Which vector instructions this processor has, for loops that are compiled once for each set.

#include <cstddef>

namespace motley::machine {

/// How many of these, the fastest last: portable (on arm64 that is NEON), AVX2, AVX-512 (F, BW, DQ, VL).
std::size_t instruction_sets() noexcept;

}  // namespace motley::machine
