#include "store/redo.h"

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
  for (std::size_t size = 0; size <= whole.size(); ++size) {
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
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x80);
    test::spill(log, damaged);
    EXPECT_LT(replay(run.path(), 0).reached, 2U) << "byte " << at;
  }
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
