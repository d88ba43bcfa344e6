#pragma once
// Whether new weights are there sooner where workers hand them on than where the coordinator sends them to each: its
// own link carries them once, and the last has them so many hops later. Pure.

#include <cstddef>
#include <optional>
#include <span>

namespace motley::plan {

struct Chained {
  std::size_t workers = 0;  // on other machines
  double bytes = 0;         // of a version, to one
  double hop_bytes = 0;     // that are whole before they are handed on
  /// Towards each of them, where it is known, and of the coordinator's own link.
  std::span<const double> bytes_per_second{};
  std::optional<double> own{};
};

/// The seconds by which a version is there sooner; empty while no link is known. Negative: later.
std::optional<double> chain_gain(const Chained& of) noexcept;

/// Whether that is worth it in steps of so many seconds. `on`: it is done already.
bool chain_pays(std::optional<double> gain, double step_seconds, bool on) noexcept;

}  // namespace motley::plan
