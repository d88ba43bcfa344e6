#pragma once
// How the positions of a round lie: those that are owed from rounds before come first, then those of its own steps; and
// where they are cut, so that each worker has a slice that its local steps can share out evenly. Pure.

#include <cstdint>
#include <span>
#include <vector>

#include "base/batch_plan.h"
#include "modes/work/interval_set.h"

namespace motley::modes {

/// So many pieces at the most are taken into a round; what is left of them stays owed.
inline constexpr std::size_t kOwedPiecesMax = 512;
/// A lease has so many at the most: a worker refuses more.
inline constexpr std::size_t kLeasePiecesMax = 1024;

/// Positions of a round.
using RoundSpans = std::vector<Owed>;

[[nodiscard]] std::uint64_t positions(std::span<const Owed> spans) noexcept;
/// What the interval of a round's positions stands for, in their order. REQUIRES it lies within them.
[[nodiscard]] RoundSpans parts_of(std::span<const Owed> spans, Interval interval);
/// What of the interval one lease may have: so many positions and pieces at the most. Not empty where the interval is
/// not.
[[nodiscard]] Interval first_part(std::span<const Owed> spans, Interval interval, std::uint64_t most,
                                  std::size_t pieces) noexcept;
/// Takes so many positions off the front at the most, and kOwedPiecesMax pieces.
[[nodiscard]] RoundSpans take_first(RoundSpans& from, std::uint64_t most);
/// Puts pieces that follow each other together.
void append(RoundSpans& to, const Owed& piece);

/// The slices of a round, from what the planner would give each: boundaries move to multiples of `unit`, and who would
/// have less than one unit has nothing, so that its neighbour has it. The result tiles [0, sum of counts).
[[nodiscard]] std::vector<Interval> slices(std::span<const std::uint64_t> counts, std::uint64_t unit);

}  // namespace motley::modes
