#include "store/redo.h"

#include <algorithm>

#include "temporary.h"

namespace motley::store {
namespace {

using test::floats;
using test::message;
using test::TemporaryDirectory;

std::vector<SharedBytes> gradients(std::uint64_t version, float variant = 0) {
  return {floats({static_cast<float>(version), variant, 1, 2}), {}, floats({-static_cast<float>(version)})};
}

void append(const std::filesystem::path& run, std::uint64_t base, std::uint64_t end, float variant = 0) {
  auto writer = RedoWriter::create(run, base);
  ASSERT_TRUE(writer) << message(writer);
  for (std::uint64_t version = base; version < end; ++version)
    ASSERT_TRUE(writer->append(version, gradients(version, variant)));
  ASSERT_TRUE(writer->sync());
}

struct Replayed {
  std::uint64_t reached = 0;
  std::vector<float> variants;
};

Replayed replay(const std::filesystem::path& run, std::uint64_t from) {
  Replayed result;
  std::uint64_t expected = from;
  const auto reached =
      replay_redo(run, from, [&](std::uint64_t version, std::span<const SharedBytes> chunks) -> Status {
        EXPECT_EQ(version, expected++);
        EXPECT_EQ(chunks.size(), 3U);
        EXPECT_EQ(chunks[0].floats()[0], static_cast<float>(version));
        EXPECT_EQ(chunks[0].size(), 16U);
        EXPECT_TRUE(chunks[1].empty());
        EXPECT_EQ(chunks[2].floats()[0], -static_cast<float>(version));
        result.variants.push_back(chunks[0].floats()[1]);
        return {};
      });
  EXPECT_TRUE(reached) << message(reached);
  EXPECT_EQ(*reached, expected);
  result.reached = *reached;
  return result;
}

// All but most of the zeros that fill the page of the file's head.
std::vector<std::size_t> places(std::size_t end) {
  constexpr std::size_t kPage = 4096, kNear = 64, kStep = 61;
  std::vector<std::size_t> found;
  for (std::size_t at = 0; at < end; ++at)
    if (at < kNear || at + kNear >= kPage || at % kStep == 0) found.push_back(at);
  return found;
}

TEST(Redo, ReplaysAcrossLogsFromAnyVersion) {
  const TemporaryDirectory run;
  append(run.path(), 0, 3);
  append(run.path(), 3, 5);
  append(run.path(), 5, 6);
  EXPECT_TRUE(std::filesystem::exists(run.path() / "redo" / "from-000000003"));
  for (std::uint64_t from = 0; from <= 6; ++from) EXPECT_EQ(replay(run.path(), from).reached, 6U);
  EXPECT_EQ(replay(run.path(), 9).reached, 9U);
}

TEST(Redo, NothingThereIsNoError) {
  const TemporaryDirectory run;
  EXPECT_EQ(replay(run.path(), 4).reached, 4U);
}

TEST(Redo, StopsAtAGap) {
  const TemporaryDirectory run;
  append(run.path(), 0, 3);
  append(run.path(), 4, 6);
  EXPECT_EQ(replay(run.path(), 0).reached, 3U);
  EXPECT_EQ(replay(run.path(), 4).reached, 6U);
}

TEST(Redo, ALogFromAnEarlierVersionEndsWhatWasWrittenBefore) {
  const TemporaryDirectory run;
  append(run.path(), 0, 6, 1);
  append(run.path(), 6, 9, 1);
  append(run.path(), 4, 5, 2);  // rolled back to 4
  const Replayed result = replay(run.path(), 2);
  EXPECT_EQ(result.variants, (std::vector<float>{1, 1, 2}));
  EXPECT_FALSE(std::filesystem::exists(run.path() / "redo" / "from-000000006"));
}

TEST(Redo, EveryTruncationIsAPrefix) {
  const TemporaryDirectory run;
  append(run.path(), 0, 3);
  const auto log = run.path() / "redo" / "from-000000000";
  const std::string whole = test::slurp(log);
  std::uint64_t before = 0;
  for (const std::size_t size : places(whole.size() + 1)) {
    test::spill(log, whole.substr(0, size));
    const std::uint64_t reached = replay(run.path(), 0).reached;
    EXPECT_GE(reached, before);
    before = reached;
  }
  EXPECT_EQ(before, 3U);
}

TEST(Redo, EveryFlippedBitEndsTheReplayBeforeIt) {
  const TemporaryDirectory run;
  append(run.path(), 0, 2);
  const auto log = run.path() / "redo" / "from-000000000";
  const std::string whole = test::slurp(log);
  for (const std::size_t at : places(whole.size())) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x80);
    test::spill(log, damaged);
    EXPECT_LT(replay(run.path(), 0).reached, 2U) << "byte " << at;
  }
}

// Large enough to go past the page cache, on pages and beside them.
TEST(Redo, LargeRecordsComeBackAsTheyWere) {
  const TemporaryDirectory run;
  constexpr std::size_t kFloats = 700001;  // no multiple of a page
  BufferPool pool;
  std::vector<SharedBytes> chunks;
  for (int chunk = 0; chunk < 3; ++chunk) {
    MutableBytes values = pool.take(kFloats * sizeof(float));
    for (std::size_t i = 0; i < kFloats; ++i) values.floats()[i] = static_cast<float>(i) + static_cast<float>(chunk);
    chunks.push_back(std::move(values).seal());
  }
  chunks.push_back(chunks[0].slice(4, 400000));
  chunks.push_back(floats({1, 2, 3}));
  auto writer = RedoWriter::create(run.path(), 7);
  ASSERT_TRUE(writer) << message(writer);
  for (std::uint64_t version = 7; version < 10; ++version) ASSERT_TRUE(writer->append(version, chunks));
  ASSERT_TRUE(writer->sync());
  const auto reached = replay_redo(run.path(), 7, [&](std::uint64_t, std::span<const SharedBytes> read) -> Status {
    EXPECT_TRUE(std::ranges::equal(read, chunks, [](const SharedBytes& a, const SharedBytes& b) {
      return std::ranges::equal(a.bytes(), b.bytes());
    }));
    return {};
  });
  ASSERT_TRUE(reached) << message(reached);
  EXPECT_EQ(*reached, 10U);
}

TEST(Redo, AFailureToApplyIsHandedOn) {
  const TemporaryDirectory run;
  append(run.path(), 0, 3);
  const auto reached = replay_redo(run.path(), 0, [](std::uint64_t version, std::span<const SharedBytes>) -> Status {
    if (version == 1) return Error{ErrorCode::input, "wrong size", ""};
    return {};
  });
  EXPECT_EQ(message(reached), "wrong size");
}

TEST(Redo, PruningKeepsWhatIsNeeded) {
  const TemporaryDirectory run;
  append(run.path(), 0, 3);
  append(run.path(), 3, 5);
  append(run.path(), 5, 5);
  ASSERT_TRUE(prune_redo(run.path(), 2));
  EXPECT_EQ(replay(run.path(), 0).reached, 5U);
  ASSERT_TRUE(prune_redo(run.path(), 4));
  EXPECT_EQ(replay(run.path(), 0).reached, 0U);
  EXPECT_EQ(replay(run.path(), 4).reached, 5U);
  ASSERT_TRUE(prune_redo(run.path(), 100));
  EXPECT_TRUE(std::filesystem::exists(run.path() / "redo" / "from-000000005"));  // may still be written to
  EXPECT_FALSE(std::filesystem::exists(run.path() / "redo" / "from-000000003"));
}

}  // namespace
}  // namespace motley::store
