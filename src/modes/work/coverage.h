#pragma once
// Which positions of a pass are covered, chunk by chunk, and by whom. A contribution is a begun range with its weight
// and loss; a chunk of it is accepted if none of its positions is covered for that chunk yet. Keeps three invariants:
// the accepted ranges of a chunk are disjoint, a chunk is reduced once and only when it tiles the pass, and the weight
// of the pass is the sum of the weights declared first for each position. Value type; one thread at a time.

#include <cstdint>
#include <span>
#include <vector>

#include "modes/work/interval_set.h"
#include "motley/layout.h"

namespace motley::modes {

using LeaseId = std::uint64_t;

/// Weights are sums of counts or of token weights; another cut of the same positions may round differently.
[[nodiscard]] bool same_weight(double a, double b) noexcept;

/// What a worker declares when its range is frozen.
struct Contribution {
  LeaseId lease = 0;
  Interval range{};
  double weight = 0;
  double loss_sum = 0;
  std::uint64_t correct = 0;   // evaluate passes
  std::uint32_t accepted = 0;  // chunks of it that count
};

class Coverage {
 public:
  /// An accepted chunk of a contribution.
  struct Piece {
    Interval range{};
    LeaseId lease = 0;
    bool operator==(const Piece&) const = default;
  };

  enum class BeginVerdict : std::uint8_t {
    first,         // covers positions nobody had begun
    replacement,   // lies within a range begun before, with a weight that fits
    overlap,       // neither: somebody else began a part of it
    wrong_weight,  // a replacement whose weight differs from what was declared first
  };

  /// An empty pass of `positions` > 0 and `chunks` > 0. Keeps its memory.
  void reset(std::uint64_t positions, std::uint32_t chunks);

  /// REQUIRES range within the pass and not empty, weight finite and >= 0, the lease not begun before.
  BeginVerdict begin(const Contribution& contribution);
  /// It lies within a range begun before, and counts with the weight that was declared for that; where nothing of it is
  /// begun, with its own. REQUIRES as begin(), and no `overlap`.
  void replace(const Contribution& contribution);
  /// The contributions to the range that was begun around this one.
  [[nodiscard]] std::vector<Contribution> beside(Interval range) const;
  /// True: the chunk counts. False: some of its positions are covered already. REQUIRES the lease is begun.
  bool deliver(LeaseId lease, ChunkId chunk);
  /// Nothing more comes from this lease; what was accepted stays. No effect on unknown leases.
  void drop(LeaseId lease);
  /// Takes back what was accepted and not reduced yet, then drops.
  void withdraw(LeaseId lease);
  /// REQUIRES ready(chunk).
  void set_reduced(ChunkId chunk);

  [[nodiscard]] std::uint64_t positions() const noexcept { return positions_; }
  [[nodiscard]] std::uint32_t chunks() const noexcept { return static_cast<std::uint32_t>(chunks_.size()); }
  /// Every position is begun, so that weight() is the divisor of the pass.
  [[nodiscard]] bool weight_known() const noexcept { return begun_ == positions_; }
  /// Over the ranges begun so far, summed in order of positions.
  [[nodiscard]] double weight() const noexcept;
  [[nodiscard]] double loss_sum() const noexcept;
  /// Every position is covered for the chunk, the weight is known, and it was not reduced.
  [[nodiscard]] bool ready(ChunkId chunk) const noexcept;
  /// Every chunk is reduced.
  [[nodiscard]] bool complete() const noexcept;
  [[nodiscard]] bool reduced(ChunkId chunk) const noexcept { return chunks_[chunk].reduced; }
  /// The accepted pieces of a chunk in order of positions.
  [[nodiscard]] std::span<const Piece> pieces(ChunkId chunk) const noexcept { return chunks_[chunk].pieces; }
  [[nodiscard]] bool accepted(LeaseId lease, ChunkId chunk) const noexcept;
  /// Every position of the range is covered for every chunk.
  [[nodiscard]] bool covered(Interval range) const noexcept;
  [[nodiscard]] const Contribution* find(LeaseId lease) const noexcept;

  /// Positions that some chunk lacks and none of the `promised` ranges will bring: a promise counts for a chunk only
  /// where nothing of its range is covered, because it would be refused otherwise.
  [[nodiscard]] IntervalSet missing(std::span<const Interval> promised) const;
  /// Splits `missing` at every edge of a begun or accepted range, so that each part can be granted alone.
  [[nodiscard]] std::vector<Interval> tiles(const IntervalSet& missing) const;

 private:
  struct ChunkCover {
    std::vector<Piece> pieces;  // by position, disjoint
    std::uint64_t covered = 0;
    bool reduced = false;
  };
  struct Basis {  // the first declaration for its positions
    Interval range{};
    double weight = 0;
    double loss_sum = 0;
  };

  [[nodiscard]] bool weight_fits(const Basis& basis, const Contribution& contribution) const;
  void remove_unused_basis();

  std::uint64_t positions_ = 0;
  std::uint64_t begun_ = 0;
  std::vector<Basis> basis_;  // by position, disjoint
  std::vector<Contribution> contributions_;
  std::vector<ChunkCover> chunks_;
};

}  // namespace motley::modes
