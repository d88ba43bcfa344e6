#include "motley/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace motley {
namespace {

using testing::HasSubstr;

LayoutEntry trained(std::string name, std::vector<std::int64_t> shape, std::uint32_t group = 0) {
  LayoutEntry entry;
  entry.name = std::move(name);
  entry.shape = std::move(shape);
  entry.group = group;
  return entry;
}

LayoutEntry of_kind(std::string name, std::vector<std::int64_t> shape, TensorKind kind) {
  LayoutEntry entry = trained(std::move(name), std::move(shape));
  entry.kind = kind;
  if (kind == TensorKind::running_mean || kind == TensorKind::running_var) entry.momentum = 0.1F;
  return entry;
}

Layout made(std::vector<LayoutEntry> entries) {
  auto layout = Layout::make(std::move(entries));
  EXPECT_TRUE(layout.ok()) << (layout.ok() ? "" : layout.error().message);
  return layout.ok() ? *std::move(layout) : Layout();
}

std::string refusal(std::vector<LayoutEntry> entries) {
  auto layout = Layout::make(std::move(entries));
  if (layout.ok()) return "accepted";
  EXPECT_EQ(layout.error().code, ErrorCode::input);
  EXPECT_FALSE(layout.error().hint.empty());
  return layout.error().message;
}

/// A convolution with BatchNorm and everything else that can stand in a state_dict.
std::vector<LayoutEntry> model() {
  return {trained("conv.weight", {64, 16, 3, 3}),
          trained("conv.bias", {64}),
          of_kind("norm.running_mean", {64}, TensorKind::running_mean),
          of_kind("norm.running_var", {64}, TensorKind::running_var),
          of_kind("norm.num_batches_tracked", {}, TensorKind::counter),
          of_kind("embedding", {100, 100}, TensorKind::frozen),
          trained("head.weight", {10, 500}, 1)};
}

TEST(Layout, PutsRegionsInOrder) {
  auto entries = model();
  entries[5].dtype = DType::bf16;  // frozen tensors may be of any type
  entries.push_back(of_kind("tied", {10, 500}, TensorKind::alias));
  entries.back().alias_of = "head.weight";
  const Layout layout = made(entries);

  ASSERT_EQ(layout.placements().size(), 5U);
  std::vector<std::string> names;
  for (const Placement& p : layout.placements()) names.push_back(layout.entries()[p.entry].name);
  EXPECT_THAT(names,
              testing::ElementsAre("conv.weight", "head.weight", "conv.bias", "norm.running_mean", "norm.running_var"));
  ASSERT_EQ(layout.chunks().size(), 3U);
  EXPECT_EQ(layout.chunks()[0].kind, ChunkKind::large);
  EXPECT_EQ(layout.chunks()[0].elements, 9216U + 5056U);  // 5000 padded to a multiple of 64
  EXPECT_EQ(layout.chunks()[1].kind, ChunkKind::small);
  EXPECT_EQ(layout.chunks()[1].elements, 64U);
  EXPECT_EQ(layout.chunks()[2].kind, ChunkKind::statistics);
  EXPECT_EQ(layout.chunks()[2].elements, 128U);
  EXPECT_EQ(layout.parameters(), 9216U + 5000U + 64U);
  EXPECT_EQ(layout.flat_elements(), 9216U + 5056U + 64U + 128U);
  EXPECT_TRUE(layout.has_statistics());
}

TEST(Layout, EmptyRegionsYieldNoChunk) {
  EXPECT_TRUE(made({}).chunks().empty());
  EXPECT_FALSE(made({}).has_statistics());
  EXPECT_TRUE(made({of_kind("frozen", {9000}, TensorKind::frozen)}).chunks().empty());
  const Layout scalar = made({trained("scale", {})});
  ASSERT_EQ(scalar.chunks().size(), 1U);
  EXPECT_EQ(scalar.chunks()[0].kind, ChunkKind::small);
  EXPECT_EQ(scalar.parameters(), 1U);
}

TEST(Layout, CutsTheLargeRegionByItsSize) {
  const auto first_chunk_bytes = [](std::int64_t elements) {
    return made({trained("w", {elements})}).chunks()[0].elements * std::uint64_t{4};
  };
  EXPECT_EQ(first_chunk_bytes(500'000), Layout::kChunkBytesMin);
  EXPECT_EQ(first_chunk_bytes(2'000'000), 125'184U);  // 8,000,000 / 64 rounded up to a multiple of 256
  EXPECT_EQ(first_chunk_bytes(1'000'000'000), Layout::kChunkBytesMax);
  const Layout layout = made({trained("w", {2'000'000})});
  EXPECT_EQ(layout.chunks().size(), 64U);
  EXPECT_EQ(layout.chunks().back().elements, 2'000'000U - 63 * 125'184U / 4);
}

TEST(Layout, FindsTheTensorsOfAChunk) {
  // 64 KiB are 16,384 elements: the first tensor ends in the second chunk, where the second one begins.
  const Layout layout = made({trained("a", {20'000}), trained("b", {30'000}), trained("c", {7})});
  using Range = std::pair<std::size_t, std::size_t>;
  ASSERT_EQ(layout.chunks().size(), 5U);
  EXPECT_EQ(layout.placements_of(0), Range(0, 1));
  EXPECT_EQ(layout.placements_of(1), Range(0, 2));
  EXPECT_EQ(layout.placements_of(2), Range(1, 2));
  EXPECT_EQ(layout.placements_of(3), Range(1, 2));
  EXPECT_EQ(layout.placements_of(4), Range(2, 3));
}

TEST(Layout, RefusesWhatItCannotHold) {
  EXPECT_THAT(refusal({trained("", {1})}), HasSubstr("no name"));
  EXPECT_THAT(refusal({trained("w", {2}), trained("w", {2})}), HasSubstr("'w' is used by two tensors"));
  EXPECT_THAT(refusal({trained("w", {4, -1})}), HasSubstr("[4, -1]"));
  EXPECT_THAT(refusal({trained("w", {0, 3})}), HasSubstr("no elements"));
  const auto huge = std::numeric_limits<std::int64_t>::max();
  EXPECT_THAT(refusal({trained("w", {huge, huge, huge})}), HasSubstr("at most"));
  EXPECT_THAT(refusal({of_kind("w", {huge, 3}, TensorKind::frozen)}), HasSubstr("at most"));
  EXPECT_THAT(refusal({trained("a", {std::int64_t{1} << 36}), trained("b", {1})}), HasSubstr("counted up to 'b'"));
  EXPECT_THAT(refusal(std::vector<LayoutEntry>(Layout::kEntriesMax + 1)), HasSubstr("65537 tensors"));

  auto half = trained("w", {8});
  half.dtype = DType::f16;
  EXPECT_THAT(refusal({half}), HasSubstr("is f16, expected f32"));
  half.dtype = static_cast<DType>(77);
  EXPECT_THAT(refusal({half}), HasSubstr("unknown dtype"));
  auto alias = of_kind("tied", {8}, TensorKind::alias);
  alias.alias_of = "w";
  EXPECT_THAT(refusal({alias}), HasSubstr("points to 'w'"));
}

TEST(Layout, RefusesUnpairedStatistics) {
  const auto mean = of_kind("m", {8}, TensorKind::running_mean);
  const auto var = of_kind("v", {8}, TensorKind::running_var);
  EXPECT_THAT(refusal({mean}), HasSubstr("'m' is not followed"));
  EXPECT_THAT(refusal({mean, trained("w", {8}), var}), HasSubstr("'m' is not followed"));
  EXPECT_THAT(refusal({var, mean}), HasSubstr("'v' does not follow"));
  auto other = var;
  other.shape = {9};
  EXPECT_THAT(refusal({mean, other}), HasSubstr("same shape"));
  auto unset = mean;
  unset.momentum = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(refusal({unset, var}), HasSubstr("momentum"));
  EXPECT_THAT(
      refusal({of_kind("m", {3 << 20}, TensorKind::running_mean), of_kind("v", {3 << 20}, TensorKind::running_var)}),
      HasSubstr("statistics take"));
}

TEST(LayoutDifference, NamesTheFirstOne) {
  const auto changed = [](auto change) {
    auto entries = model();
    change(entries);
    return difference(made(model()), made(entries));
  };
  EXPECT_EQ(changed([](auto&) {}), "");
  EXPECT_EQ(changed([](auto& e) { e[0].shape = {64, 32, 3, 3}; }),
            "conv.weight: [64, 16, 3, 3] here, [64, 32, 3, 3] there");
  EXPECT_EQ(changed([](auto& e) { e[1].name = "conv.shift"; }), "tensor 1: conv.bias here, conv.shift there");
  EXPECT_EQ(changed([](auto& e) { e[1].kind = TensorKind::frozen; }), "conv.bias: trained here, frozen there");
  EXPECT_EQ(changed([](auto& e) { e[5].dtype = DType::bf16; }), "embedding: f32 here, bf16 there");
  EXPECT_EQ(changed([](auto& e) { e[5].content_hash = 1; }), "embedding: the frozen values differ");
  EXPECT_EQ(changed([](auto& e) { e[6].group = 0; }), "head.weight: parameter group 1 here, parameter group 0 there");
  EXPECT_THAT(changed([](auto& e) { e[2].momentum = e[3].momentum = 0.5F; }), HasSubstr("norm.running_mean: momentum"));
  EXPECT_EQ(changed([](auto& e) { e.pop_back(); }), "head.weight: here, missing there");
  EXPECT_EQ(changed([](auto& e) { e.push_back(trained("more", {1})); }), "more: missing here, there");
}

TEST(Layout, CountersFollowFromTheSteps) {
  LayoutEntry counter = of_kind("norm.num_batches_tracked", {}, TensorKind::counter);
  EXPECT_EQ(counter.counter_at(7), 7U);
  counter.content_hash = 100;  // of a model that was trained before
  EXPECT_EQ(counter.counter_at(7), 107U);
  counter.momentum = 3;  // the layer runs three times in a forward pass
  EXPECT_EQ(counter.counter_at(7), 121U);

  auto entries = model(), others = model();
  entries[4].content_hash = 5;
  EXPECT_EQ(difference(made(entries), made(others)), "") << "who does not count need not know where it began";
  entries[4].momentum = 2;
  EXPECT_EQ(difference(made(entries), made(others)),
            "norm.num_batches_tracked: a step counts 2 here, a step counts 1 there");
  for (const float wrong : {0.5F, -1.0F, 1e9F, std::numeric_limits<float>::quiet_NaN()}) {
    entries[4].momentum = wrong;
    EXPECT_FALSE(Layout::make(entries)) << wrong;
  }
}

}  // namespace
}  // namespace motley
