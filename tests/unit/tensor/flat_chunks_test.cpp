#include "tensor/flat_chunks.h"

#include <gtest/gtest.h>

#include <numeric>

namespace motley {
namespace {

Layout with_statistics(std::int64_t weights = 5000) {
  std::vector<LayoutEntry> entries(3);
  entries[0].name = "weight";
  entries[0].shape = {weights};
  entries[1].name = "mean";
  entries[1].shape = {3};
  entries[1].kind = TensorKind::running_mean;
  entries[2].name = "var";
  entries[2].shape = {3};
  entries[2].kind = TensorKind::running_var;
  return *Layout::make(std::move(entries));
}

TEST(FlatChunks, GoThereAndBack) {
  const Layout layout = with_statistics();
  std::vector<float> flat(layout.flat_elements()), back(flat.size(), -1.0F);
  std::iota(flat.begin(), flat.end(), 1.0F);
  put_chunks(layout, copy_chunks(layout, flat, true), back);
  EXPECT_EQ(back, flat);
}

TEST(FlatChunks, SoManyThatThreadsShareThem) {
  const Layout layout = with_statistics((std::int64_t{1} << 24) + 5);
  std::vector<float> flat(layout.flat_elements()), back(flat.size(), -1.0F);
  std::iota(flat.begin(), flat.end(), 1.0F);
  put_chunks(layout, copy_chunks(layout, flat, true), back);
  EXPECT_TRUE(back == flat);
}

TEST(FlatChunks, WhatIsMissingIsZero) {
  const Layout layout = with_statistics();
  const std::vector<float> flat(layout.flat_elements(), 2.0F);
  std::vector<float> back(flat.size(), -1.0F);
  const std::vector<SharedBytes> chunks = copy_chunks(layout, flat, false);
  const Chunk& statistics = layout.chunks().back();
  EXPECT_TRUE(chunks.back().empty());
  put_chunks(layout, chunks, back);
  EXPECT_EQ(back[statistics.offset - 1], 2.0F);
  EXPECT_EQ(back[statistics.offset], 0.0F);
}

}  // namespace
}  // namespace motley
