#include "modes/work/coverage.h"

#include <algorithm>

#include "base/assert.h"

namespace motley::modes {
namespace {

auto by_position = [](const auto& item, std::uint64_t first) { return item.range.first < first; };

constexpr double kWeightTolerance = 1e-6;

}  // namespace

bool same_weight(double a, double b) noexcept {
  const double difference = a < b ? b - a : a - b;
  return difference <= kWeightTolerance * std::max({a, b, 1.0});
}

void Coverage::reset(std::uint64_t positions, std::uint32_t chunks) {
  MOTLEY_ASSERT(positions > 0 && chunks > 0);
  positions_ = positions;
  begun_ = 0;
  basis_.clear();
  contributions_.clear();
  chunks_.resize(chunks);
  for (ChunkCover& chunk : chunks_) {
    chunk.pieces.clear();
    chunk.covered = 0;
    chunk.reduced = false;
  }
}

Coverage::BeginVerdict Coverage::begin(const Contribution& contribution) {
  const Interval range = contribution.range;
  MOTLEY_ASSERT(range.count > 0 && range.end() > range.first && range.end() <= positions_);
  MOTLEY_ASSERT(contribution.weight >= 0 && find(contribution.lease) == nullptr);
  MOTLEY_ASSERT(contribution.accepted == 0);
  auto at = std::lower_bound(basis_.begin(), basis_.end(), range.first, by_position);
  if (at != basis_.begin() && std::prev(at)->range.end() > range.first) --at;
  if (at == basis_.end() || !at->range.overlaps(range)) {
    basis_.insert(at, Basis{range, contribution.weight, contribution.loss_sum});
    begun_ += range.count;
    contributions_.push_back(contribution);
    return BeginVerdict::first;
  }
  if (!range.within(at->range)) return BeginVerdict::overlap;
  if (!weight_fits(*at, contribution)) return BeginVerdict::wrong_weight;
  contributions_.push_back(contribution);
  return BeginVerdict::replacement;
}

void Coverage::replace(const Contribution& contribution) {
  if (begin(contribution) == BeginVerdict::wrong_weight) contributions_.push_back(contribution);
}

std::vector<Contribution> Coverage::beside(Interval range) const {
  std::vector<Contribution> found;
  for (const Basis& basis : basis_) {
    if (!basis.range.overlaps(range)) continue;
    for (const Contribution& contribution : contributions_)
      if (contribution.range.overlaps(basis.range)) found.push_back(contribution);
  }
  return found;
}

bool Coverage::weight_fits(const Basis& basis, const Contribution& contribution) const {
  IntervalSet tiled(contribution.range);
  double sum = contribution.weight;
  for (const Contribution& other : contributions_) {
    if (!other.range.within(basis.range) || tiled.overlaps(other.range)) continue;
    tiled.insert(other.range);
    sum += other.weight;
  }
  if (tiled.size() == basis.range.count) return same_weight(sum, basis.weight);
  return sum <= basis.weight || same_weight(sum, basis.weight);
}

bool Coverage::deliver(LeaseId lease, ChunkId chunk) {
  const auto from = std::find_if(contributions_.begin(), contributions_.end(),
                                 [&](const Contribution& contribution) { return contribution.lease == lease; });
  MOTLEY_ASSERT(from != contributions_.end() && chunk < chunks_.size());
  ChunkCover& cover = chunks_[chunk];
  const Interval range = from->range;
  const auto at = std::lower_bound(cover.pieces.begin(), cover.pieces.end(), range.first, by_position);
  if (at != cover.pieces.end() && at->range.overlaps(range)) return false;
  if (at != cover.pieces.begin() && std::prev(at)->range.overlaps(range)) return false;
  MOTLEY_ASSERT(!cover.reduced);
  cover.pieces.insert(at, Piece{range, lease});
  cover.covered += range.count;
  ++from->accepted;
  MOTLEY_ASSERT(cover.covered <= positions_);
  return true;
}

void Coverage::drop(LeaseId lease) {
  const auto erased =
      std::erase_if(contributions_, [&](const Contribution& c) { return c.lease == lease && c.accepted == 0; });
  if (erased > 0) remove_unused_basis();
}

void Coverage::withdraw(LeaseId lease) {
  const auto from = std::find_if(contributions_.begin(), contributions_.end(),
                                 [&](const Contribution& contribution) { return contribution.lease == lease; });
  if (from == contributions_.end()) return;
  for (ChunkCover& cover : chunks_) {
    if (cover.reduced) continue;
    if (std::erase_if(cover.pieces, [&](const Piece& piece) { return piece.lease == lease; }) == 0) continue;
    cover.covered -= from->range.count;
    MOTLEY_ASSERT(from->accepted > 0);
    --from->accepted;
  }
  drop(lease);
}

void Coverage::remove_unused_basis() {
  std::erase_if(basis_, [&](const Basis& basis) {
    const bool used = std::any_of(contributions_.begin(), contributions_.end(),
                                  [&](const Contribution& c) { return c.range.overlaps(basis.range); });
    if (!used) begun_ -= basis.range.count;
    return !used;
  });
}

void Coverage::set_reduced(ChunkId chunk) {
  MOTLEY_ASSERT(ready(chunk));
  chunks_[chunk].reduced = true;
}

double Coverage::weight() const noexcept {
  double sum = 0;
  for (const Basis& basis : basis_) sum += basis.weight;
  return sum;
}

double Coverage::loss_sum() const noexcept {
  double sum = 0;
  for (const Basis& basis : basis_) sum += basis.loss_sum;
  return sum;
}

bool Coverage::ready(ChunkId chunk) const noexcept {
  MOTLEY_ASSERT(chunk < chunks_.size());
  const ChunkCover& cover = chunks_[chunk];
  return !cover.reduced && cover.covered == positions_ && weight_known();
}

bool Coverage::complete() const noexcept {
  return std::all_of(chunks_.begin(), chunks_.end(), [](const ChunkCover& cover) { return cover.reduced; });
}

bool Coverage::accepted(LeaseId lease, ChunkId chunk) const noexcept {
  MOTLEY_ASSERT(chunk < chunks_.size());
  const auto& pieces = chunks_[chunk].pieces;
  return std::any_of(pieces.begin(), pieces.end(), [&](const Piece& piece) { return piece.lease == lease; });
}

bool Coverage::covered(Interval range) const noexcept {
  return std::all_of(chunks_.begin(), chunks_.end(), [&](const ChunkCover& cover) {
    std::uint64_t next = range.first;
    for (const Piece& piece : cover.pieces) {
      if (piece.range.first > next) break;
      next = std::max(next, piece.range.end());
    }
    return next >= range.end();
  });
}

const Contribution* Coverage::find(LeaseId lease) const noexcept {
  for (const Contribution& contribution : contributions_)
    if (contribution.lease == lease) return &contribution;
  return nullptr;
}

IntervalSet Coverage::missing(std::span<const Interval> promised) const {
  IntervalSet result;
  IntervalSet lacking;
  for (const ChunkCover& cover : chunks_) {
    if (cover.covered == positions_) continue;
    lacking.clear();
    lacking.insert({0, positions_});
    for (const Piece& piece : cover.pieces) lacking.erase(piece.range);
    for (const Interval& promise : promised) {
      const bool refused = std::any_of(cover.pieces.begin(), cover.pieces.end(),
                                       [&](const Piece& piece) { return piece.range.overlaps(promise); });
      if (!refused) lacking.erase(promise);
    }
    for (const Interval& range : lacking.ranges()) result.insert(range);
  }
  return result;
}

std::vector<Interval> Coverage::tiles(const IntervalSet& missing) const {
  std::vector<std::uint64_t> cuts;
  for (const Basis& basis : basis_) {
    cuts.push_back(basis.range.first);
    cuts.push_back(basis.range.end());
  }
  for (const ChunkCover& cover : chunks_) {
    for (const Piece& piece : cover.pieces) {
      cuts.push_back(piece.range.first);
      cuts.push_back(piece.range.end());
    }
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  std::vector<Interval> result;
  for (const Interval& range : missing.ranges()) {
    std::uint64_t first = range.first;
    for (const std::uint64_t cut : cuts) {
      if (cut <= first || cut >= range.end()) continue;
      result.push_back({first, cut - first});
      first = cut;
    }
    result.push_back({first, range.end() - first});
  }
  return result;
}

}  // namespace motley::modes
