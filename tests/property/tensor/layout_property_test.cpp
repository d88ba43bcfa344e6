#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "motley/layout.h"

namespace motley {
namespace {

/// Trained tensors from scalars to several chunks, with BatchNorm pairs and tensors without room among them.
std::vector<LayoutEntry> any_entries() {
  const auto count = *rc::gen::inRange(0, 12);
  std::vector<LayoutEntry> entries;
  for (int i = 0; i < count; ++i) {
    LayoutEntry entry;
    entry.name = std::to_string(i);
    const auto size = static_cast<std::int64_t>(*rc::gen::inRange(1, 1 << *rc::gen::inRange(1, 18)));
    entry.shape = {size};
    entry.group = *rc::gen::inRange(0U, 3U);
    const int kind = *rc::gen::inRange(0, 10);
    if (kind == 0) entry.kind = TensorKind::frozen;
    if (kind == 1) entry.kind = TensorKind::counter;
    if (kind == 2) entry.kind = TensorKind::running_mean;
    entries.push_back(entry);
    if (kind == 2) {
      entry.name += ".var";
      entry.kind = TensorKind::running_var;
      entries.push_back(entry);
    }
  }
  return entries;
}

Layout any_layout() {
  auto layout = Layout::make(any_entries());
  RC_ASSERT(layout.ok());
  return *std::move(layout);
}

RC_GTEST_PROP(LayoutProperties, TensorsAreAlignedAndDisjoint, ()) {
  const Layout layout = any_layout();
  std::uint64_t end = 0;
  std::uint64_t parameters = 0;
  for (const Placement& p : layout.placements()) {
    const LayoutEntry& entry = layout.entries()[p.entry];
    RC_ASSERT(p.offset % Layout::kAlignElements == 0U);
    RC_ASSERT(p.offset >= end);
    RC_ASSERT(p.offset - end < Layout::kAlignElements);  // padding only, no holes
    RC_ASSERT(p.elements == entry.elements());
    end = p.offset + p.elements;
    if (entry.kind == TensorKind::trained) parameters += p.elements;
  }
  RC_ASSERT(layout.flat_elements() >= end);
  RC_ASSERT(layout.flat_elements() - end < Layout::kAlignElements);
  RC_ASSERT(layout.parameters() == parameters);
}

RC_GTEST_PROP(LayoutProperties, ChunksTileTheVectorAndKeepRegionsApart, ()) {
  const Layout layout = any_layout();
  std::uint64_t offset = 0;
  ChunkKind kind = ChunkKind::large;
  for (ChunkId c = 0; c < layout.chunks().size(); ++c) {
    const Chunk& chunk = layout.chunks()[c];
    RC_ASSERT(chunk.offset == offset);
    RC_ASSERT(chunk.elements > 0U);
    RC_ASSERT(chunk.elements % Layout::kAlignElements == 0U);
    RC_ASSERT(chunk.kind >= kind);
    if (chunk.kind != ChunkKind::statistics) RC_ASSERT(chunk.elements * 4U <= Layout::kChunkBytesMax);
    // Regular cuts: only the last chunk of a region is shorter than the one before.
    if (c > 0 && chunk.kind == kind) RC_ASSERT(chunk.elements <= layout.chunks()[c - 1].elements);
    const bool last_of_kind = c + 1 == layout.chunks().size() || layout.chunks()[c + 1].kind != chunk.kind;
    if (!last_of_kind) RC_ASSERT(chunk.elements * 4U >= Layout::kChunkBytesMin);
    kind = chunk.kind;
    offset += chunk.elements;

    const auto [first, last] = layout.placements_of(c);
    RC_ASSERT(first < last);
    for (std::size_t i = 0; i < layout.placements().size(); ++i) {
      const Placement& p = layout.placements()[i];
      const bool overlaps = p.offset < offset && p.offset + p.elements > chunk.offset;
      RC_ASSERT(overlaps == (i >= first && i < last));
      if (!overlaps) continue;
      const LayoutEntry& entry = layout.entries()[p.entry];
      const auto expected = entry.kind != TensorKind::trained            ? ChunkKind::statistics
                            : p.elements >= Layout::kSmallTensorElements ? ChunkKind::large
                                                                         : ChunkKind::small;
      RC_ASSERT(chunk.kind == expected);
    }
  }
  RC_ASSERT(offset == layout.flat_elements());
}

RC_GTEST_PROP(LayoutProperties, TheSameEntriesGiveTheSameLayout, ()) {
  const Layout layout = any_layout();
  auto again = Layout::make({layout.entries().begin(), layout.entries().end()});
  RC_ASSERT(again.ok());
  RC_ASSERT(difference(layout, *again).empty());
  RC_ASSERT(again->flat_elements() == layout.flat_elements());
  RC_ASSERT(std::equal(again->chunks().begin(), again->chunks().end(), layout.chunks().begin(), layout.chunks().end(),
                       [](const Chunk& a, const Chunk& b) {
                         return a.offset == b.offset && a.elements == b.elements && a.kind == b.kind;
                       }));
}

}  // namespace
}  // namespace motley
