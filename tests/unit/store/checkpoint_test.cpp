#include "store/checkpoint.h"

#include <numeric>

#include "checkpoint_content.h"
#include "store/run_dir.h"
#include "store/safetensors.h"
#include "temporary.h"

namespace motley::store {
namespace {

using test::latest;
using test::make_content;
using test::message;
using test::slurp;
using test::spill;
using test::TemporaryDirectory;

void expect_equal(const std::vector<SharedBytes>& a, const std::vector<SharedBytes>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(test::text(a[i]), test::text(b[i])) << "chunk " << i;
}

void expect_equal(const CheckpointContent& a, const CheckpointContent& b) {
  EXPECT_EQ(difference(a.layout, b.layout), "");
  EXPECT_EQ(a.step, b.step);
  EXPECT_EQ(a.epoch, b.epoch);
  EXPECT_EQ(a.position, b.position);
  EXPECT_EQ(a.run, b.run);
  EXPECT_EQ(a.incarnation, b.incarnation);
  EXPECT_EQ(a.updates_before, b.updates_before);
  EXPECT_EQ(a.config, b.config);
  EXPECT_EQ(a.model_kind, b.model_kind);
  expect_equal(a.weights, b.weights);
  ASSERT_EQ(a.optimizer.size(), b.optimizer.size());
  for (const auto& [state, chunks] : a.optimizer) expect_equal(chunks, b.optimizer.at(state));
  ASSERT_EQ(a.frozen.size(), b.frozen.size());
  for (const auto& [name, bytes] : a.frozen) EXPECT_EQ(test::text(bytes), test::text(b.frozen.at(name)));
}

TEST(Checkpoint, GivesBackWhatItWasGiven) {
  const TemporaryDirectory run;
  CheckpointContent content = make_content(123);
  content.updates_before = 100;
  const auto path = write_checkpoint(run.path(), content);
  ASSERT_TRUE(path) << message(path);
  EXPECT_EQ(*path, run.path() / "checkpoints" / "step-000000123");
  EXPECT_EQ(slurp(run.path() / "checkpoints" / "latest"), "step-000000123\n");
  const auto back = latest(run.path());
  ASSERT_TRUE(back) << message(back);
  expect_equal(content, *back);
}

TEST(Checkpoint, TheModelFileHoldsTheStateDict) {
  const TemporaryDirectory run;
  const CheckpointContent content = make_content(123);
  ASSERT_TRUE(write_checkpoint(run.path(), content));
  const auto model = read_safetensors(run.path() / "checkpoints/step-000000123/model.safetensors");
  ASSERT_TRUE(model) << message(model);
  std::map<std::string, TensorView> tensors;
  for (const TensorView& tensor : model->tensors) tensors[tensor.name] = tensor;
  EXPECT_EQ(tensors.size(), 9U);
  for (const Placement& placement : content.layout.placements()) {
    const LayoutEntry& entry = content.layout.entries()[placement.entry];
    const TensorView& tensor = tensors.at(entry.name);
    EXPECT_EQ(tensor.shape, entry.shape);
    const SharedBytes bytes = tensor.parts.at(0);
    ASSERT_EQ(bytes.size(), placement.elements * 4);
    EXPECT_EQ(bytes.floats().front(), static_cast<float>(placement.offset) + 0.25F);
    EXPECT_EQ(bytes.floats().back(), static_cast<float>(placement.offset + placement.elements - 1) + 0.25F);
  }
  EXPECT_EQ(test::text(tensors.at("tied.weight").parts[0]), test::text(tensors.at("head.weight").parts[0]));
  EXPECT_EQ(tensors.at("bn.num_batches_tracked").dtype, DType::i64);
  EXPECT_EQ(test::text(tensors.at("bn.num_batches_tracked").parts[0]), std::string("\xde\x04\0\0\0\0\0\0", 8))
      << "1000 + 2 * 123";
  EXPECT_EQ(tensors.at("frozen").dtype, DType::f16);
  const auto optimizer = read_safetensors(run.path() / "checkpoints/step-000000123/optimizer.safetensors");
  ASSERT_TRUE(optimizer) << message(optimizer);
  EXPECT_EQ(optimizer->metadata.at("step"), "123");
  EXPECT_EQ(optimizer->tensors.size(), 4U + 6U);
  EXPECT_EQ(optimizer->tensors.at(0).name, "conv.weight.exp_avg");
}

TEST(Checkpoint, KeepsTheNewestAndStepZero) {
  const TemporaryDirectory run;
  for (const std::uint64_t step : {0, 10, 20, 30, 40}) {
    const auto path = write_checkpoint(run.path(), make_content(step), 2);
    ASSERT_TRUE(path) << message(path);
  }
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(run.path() / "checkpoints"))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"latest", "step-000000000", "step-000000030", "step-000000040"}));
}

TEST(Checkpoint, ASecondOneOfTheSameStepReplacesTheFirst) {
  const TemporaryDirectory run;
  ASSERT_TRUE(write_checkpoint(run.path(), make_content(5)));
  CheckpointContent second = make_content(5);
  second.incarnation = 9;
  ASSERT_TRUE(write_checkpoint(run.path(), second));
  EXPECT_EQ(latest(run.path())->incarnation, 9U);
}

TEST(Checkpoint, FallsBackToTheOneBeforeAndSaysSo) {
  const TemporaryDirectory run;
  ASSERT_TRUE(write_checkpoint(run.path(), make_content(5)));
  ASSERT_TRUE(write_checkpoint(run.path(), make_content(6)));
  const auto directory = run.path() / "checkpoints" / "step-000000006";
  for (const char* name : {"model.safetensors", "optimizer.safetensors", "run.json"}) {
    const std::string sound = slurp(directory / name);
    std::string damaged = sound;
    damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 1);
    for (const std::string& content : {damaged, sound.substr(0, sound.size() - 1), sound + "x", std::string()}) {
      spill(directory / name, content);
      std::vector<std::string> warnings;
      const auto back = latest(run.path(), &warnings);
      ASSERT_TRUE(back) << message(back);
      EXPECT_EQ(back->step, 5U) << name;
      ASSERT_EQ(warnings.size(), 2U);
      EXPECT_NE(warnings[0].find(name), std::string::npos) << warnings[0];
    }
    spill(directory / name, sound);
  }
  EXPECT_EQ(latest(run.path())->step, 6U);
  std::filesystem::remove_all(run.path() / "checkpoints" / "step-000000005");
  spill(directory / "run.json", "{}");
  EXPECT_EQ(latest(run.path()).error().code, ErrorCode::input);
}

TEST(Checkpoint, EveryBitOfRunJsonIsGuarded) {
  const TemporaryDirectory run;
  ASSERT_TRUE(write_checkpoint(run.path(), make_content(5)));
  const auto directory = run.path() / "checkpoints" / "step-000000005";
  const std::string sound = slurp(directory / "run.json");
  for (std::size_t i = 0; i < sound.size(); ++i) {
    std::string damaged = sound;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    spill(directory / "run.json", damaged);
    ASSERT_FALSE(read_checkpoint(directory)) << "byte " << i;
    spill(directory / "run.json", sound.substr(0, i));
    ASSERT_FALSE(read_checkpoint(directory)) << "cut to " << i;
  }
}

TEST(Checkpoint, LeftoversOfACrashAreCleared) {
  const TemporaryDirectory run;
  ASSERT_TRUE(write_checkpoint(run.path(), make_content(5)));
  const auto checkpoints = run.path() / "checkpoints";
  std::filesystem::create_directory(checkpoints / ".step-000000007.tmp-1");
  spill(checkpoints / ".step-000000007.tmp-1" / "model.safetensors", "half");
  // A crash between moving the old one of a step aside and renaming the new one.
  std::filesystem::rename(checkpoints / "step-000000005", checkpoints / ".step-000000005.old-1");
  ASSERT_FALSE(latest(run.path())) << "a reader without the lock must leave it alone";
  ASSERT_TRUE(RunDir::open(run.path(), false));
  EXPECT_EQ(latest(run.path())->step, 5U);
  EXPECT_FALSE(std::filesystem::exists(checkpoints / ".step-000000007.tmp-1"));
  EXPECT_TRUE(std::filesystem::exists(checkpoints / "step-000000005"));
}

// `latest` is written after the rename: without it, or with an old one, nothing is lost.
TEST(Checkpoint, LatestMayBeMissing) {
  const TemporaryDirectory run;
  EXPECT_EQ(latest(run.path()).error().code, ErrorCode::input);
  ASSERT_TRUE(write_checkpoint(run.path(), make_content(5)));
  std::filesystem::remove(run.path() / "checkpoints" / "latest");
  EXPECT_EQ(latest(run.path())->step, 5U);
  spill(run.path() / "checkpoints" / "latest", "nonsense");
  EXPECT_EQ(latest(run.path())->step, 5U);
}

TEST(Checkpoint, RefusesContentThatDoesNotFitItsLayout) {
  const TemporaryDirectory run;
  CheckpointContent content = make_content(1);
  content.weights.pop_back();
  EXPECT_EQ(write_checkpoint(run.path(), content).error().code, ErrorCode::internal);
  content = make_content(1);
  content.frozen.clear();
  EXPECT_NE(message(write_checkpoint(run.path(), content)).find("frozen"), std::string::npos);
  content = make_content(1);
  content.config = "\xff";
  EXPECT_EQ(write_checkpoint(run.path(), content).error().code, ErrorCode::input);
  EXPECT_TRUE(std::filesystem::is_empty(run.path() / "checkpoints"));
}

}  // namespace
}  // namespace motley::store
