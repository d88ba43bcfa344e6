#include "runtime/persist/persister.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "../../store/temporary.h"
#include "ps/server.h"

namespace motley::runtime {
namespace {

namespace fs = std::filesystem;
using store::test::message;
using store::test::TemporaryDirectory;

const store::LedgerHeader kHeader{1, 1, 100, 4, "data"};

LayoutEntry tensor_entry(const char* name, std::vector<std::int64_t> shape) {
  LayoutEntry made;
  made.name = name;
  made.shape = std::move(shape);
  return made;
}

std::vector<float> flat(const ps::Server& server) {
  std::vector<float> all;
  for (ChunkId c = 0; c < server.layout().chunks().size(); ++c) {
    const SharedBytes chunk = server.weights(c);
    all.insert(all.end(), chunk.floats().begin(), chunk.floats().end());
  }
  return all;
}

// A server that trains on made-up gradients, and a persister with what it said.
struct Training {
  TemporaryDirectory dir;
  Layout layout = *Layout::make({tensor_entry("weight", {64, 64}), tensor_entry("bias", {64})});
  ps::Server server = make_server({});
  std::vector<std::uint64_t> checkpoints;  // read after drain()
  std::vector<Error> errors;
  std::optional<Persister> persister;

  Training() { open(); }
  void open() {
    auto ledger = store::LedgerWriter::open(dir / "ledger", kHeader);
    EXPECT_TRUE(ledger) << message(ledger);
    PersisterEvents events;
    events.checkpoint = [this](std::uint64_t step, const fs::path&) { checkpoints.push_back(step); };
    events.error = [this](const Error& error) { errors.push_back(error); };
    persister.emplace(dir.path(), std::move(*ledger), std::move(events));
  }
  ps::Server make_server(ps::Snapshot snapshot) {
    ps::GroupSpec group;
    group.momentum = 0.9;
    if (snapshot.weights.empty()) {
      for (const Chunk& chunk : layout.chunks()) {
        snapshot.weights.push_back(store::test::floats(std::vector<float>(chunk.elements, 1.0F)));
      }
    }
    return *ps::Server::make(layout, {ps::OptimizerKind::sgd, {group}}, {}, 0, snapshot);
  }
  void step() {
    const std::uint64_t version = server.version();
    for (ChunkId c = 0; c < layout.chunks().size(); ++c) {
      const std::vector<float> gradient(layout.chunks()[c].elements, static_cast<float>(version + c + 1) / 3);
      const std::span<const float> part(gradient);
      server.reduce(c, {&part, 1}, 4, 4);
      server.apply(c);
    }
    server.finish_step();
    persister->step({version, 1, 4, 2, {{0, 4, "desktop/cpu"}}});
  }
  void checkpoint() {
    ps::Snapshot snapshot = server.snapshot();
    store::CheckpointContent content;
    content.layout = layout;
    content.step = snapshot.version;
    content.weights = std::move(snapshot.weights);
    content.optimizer = std::move(snapshot.optimizer);
    persister->checkpoint(std::move(content));
  }
  // What a restart finds.
  ps::Server recovered() {
    std::vector<std::string> warnings;
    Result<store::CheckpointContent> content = store::read_latest_checkpoint(dir.path(), warnings);
    EXPECT_TRUE(content) << message(content);
    EXPECT_TRUE(warnings.empty());
    return make_server({content->step, content->weights, content->optimizer});
  }
};

TEST(Persister, ARestartFindsTheNewestCheckpointAndEveryStepInTheLedger) {
  Training run;
  run.step();
  run.checkpoint();
  for (int i = 0; i < 2; ++i) run.step();
  run.checkpoint();
  const std::vector<float> saved = flat(run.server);
  for (int i = 0; i < 3; ++i) run.step();
  const auto newest = run.persister->drain();
  ASSERT_TRUE(newest) << message(newest);
  EXPECT_EQ(run.checkpoints, (std::vector<std::uint64_t>{1, 3}));
  EXPECT_TRUE(run.errors.empty());

  const ps::Server again = run.recovered();
  EXPECT_EQ(again.version(), 3U);
  EXPECT_EQ(flat(again), saved);  // bit for bit
  const auto ledger = store::read_ledger(run.dir / "ledger");
  ASSERT_TRUE(ledger) << message(ledger);
  ASSERT_EQ(ledger->steps.size(), 6U);
  EXPECT_EQ(ledger->steps[5].step, 5U);
}

TEST(Persister, WhatIsQueuedIsWrittenBeforeItEnds) {
  Training run;
  run.checkpoint();
  for (int i = 0; i < 20; ++i) run.step();
  run.checkpoint();
  run.persister.reset();
  EXPECT_EQ(run.recovered().version(), 20U);
  EXPECT_EQ(store::read_ledger(run.dir / "ledger")->steps.size(), 20U);
}

TEST(Persister, SaysHowLongACheckpointTookOnceItIsWritten) {
  Training run;
  EXPECT_EQ(run.persister->checkpoint_seconds(), 0);
  run.checkpoint();
  ASSERT_TRUE(run.persister->drain());
  EXPECT_GT(run.persister->checkpoint_seconds(), 0);
}

TEST(Persister, ACheckpointThatFailsIsSaidOnceAndTriedAgain) {
  Training run;
  run.checkpoint();
  ASSERT_TRUE(run.persister->drain());
  // No directory can be made under a file, whoever asks.
  fs::rename(run.dir / "checkpoints", run.dir / "aside");
  store::test::spill(run.dir / "checkpoints", "");
  run.step();
  run.checkpoint();
  run.step();
  run.checkpoint();
  const auto failed = run.persister->drain();
  ASSERT_FALSE(failed);
  ASSERT_EQ(run.errors.size(), 1U);
  EXPECT_EQ(run.errors[0].message, failed.error().message);
  EXPECT_EQ(run.checkpoints.size(), 1U);

  fs::remove(run.dir / "checkpoints");
  fs::rename(run.dir / "aside", run.dir / "checkpoints");
  EXPECT_EQ(run.recovered().version(), 0U);  // the old checkpoint still stands
  run.checkpoint();
  ASSERT_TRUE(run.persister->drain());
  EXPECT_EQ(run.checkpoints, (std::vector<std::uint64_t>{0, 2}));
}

TEST(Persister, DrainingNothingNamesTheNewestCheckpoint) {
  Training run;
  EXPECT_EQ(*run.persister->drain(), fs::path());
  run.checkpoint();
  EXPECT_EQ(run.persister->drain()->parent_path().filename(), "checkpoints");
}

}  // namespace
}  // namespace motley::runtime
