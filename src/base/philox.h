#pragma once
// Philox-4x32-10 (Salmon et al., SC'11): a counter-based generator, equal on every machine. std::shuffle and the std
// distributions are banned because their results differ between standard libraries.

#include <array>
#include <cstdint>

namespace motley {

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key) noexcept;

/// One seed of three: what is drawn at random for `position` at `version` of a run with `seed`, wherever it is
/// computed.
std::uint64_t mixed_seed(std::uint64_t seed, std::uint64_t version, std::uint64_t position) noexcept;

/// A stream of numbers from (seed, stream).
class Philox {
 public:
  explicit Philox(std::uint64_t seed, std::uint64_t stream = 0) noexcept : seed_(seed), stream_(stream) {}
  std::uint32_t next_u32() noexcept;
  std::uint64_t next_u64() noexcept;
  std::uint64_t below(std::uint64_t bound) noexcept;  // uniform in [0, bound), unbiased; REQUIRES bound > 0
  double uniform() noexcept;                          // [0, 1), 53 bits
  double gaussian() noexcept;                         // mean 0, variance 1 (sum of twelve uniforms: no libm)

 private:
  std::uint64_t seed_, stream_, counter_ = 0;
  std::array<std::uint32_t, 4> block_{};
  unsigned used_ = 4;
};

}  // namespace motley
