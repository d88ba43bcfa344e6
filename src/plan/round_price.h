#pragma once
// What rounds of local steps cost in quality, as it is published, and whether their speed is worth it. Pure.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace motley::plan {

/// A run, as far as prices go by it.
struct RunOutline {
  bool text = false;  // it predicts text, the only kind of model for which prices are known
  std::uint64_t parameters = 0;
  std::uint64_t steps = 0;  // that it will make
};

/// How far the final loss is likely to be above that of exact training at equal samples, in percent; below zero: below.
struct RoundPrice {
  double percent = 0;
  bool smaller = false;  // than any model that is published: extrapolated
};

/// Of a text model, with so many workers and steps a round. Nothing: too far from what is published.
[[nodiscard]] std::optional<RoundPrice> round_price(std::uint64_t parameters, std::size_t workers,
                                                    std::uint64_t local_steps);

/// Why nobody should get rounds who did not ask for them by name, in words; empty: nothing speaks against it.
[[nodiscard]] std::string against_rounds(const RunOutline& run, std::size_t workers, std::uint64_t local_steps);

/// Samples a second, less those that make up for the price.
[[nodiscard]] double worth(double samples_per_second, double percent) noexcept;

}  // namespace motley::plan
