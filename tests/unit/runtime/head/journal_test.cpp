#include "runtime/head/journal.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "../../store/temporary.h"

namespace motley::runtime {
namespace {

using store::test::message;

struct Silent final : engine::CoordinatorOutput {
  void send(engine::SessionId, wire::Frame, engine::Lane) override {}
  void close(engine::SessionId, const wire::Bye&) override {}
  void worker_changed(const engine::WorkerChange&) override {}
  void warning(std::string) override {}
  void planned(const engine::Planned&) override {}
  void step_closed(const engine::StepClosed&) override {}
  void evaluated(const engine::Evaluated&) override {}
  void finished() override {}
  void failed(Error) override {}
};

struct Advised final : report::Sink {
  std::vector<report::AdviceGiven> advice;
  void take(const report::Event& event) override {
    if (const auto* one = std::get_if<report::AdviceGiven>(&event)) advice.push_back(*one);
  }
};

struct Case {
  const char* what;
  double clip_norm;
  bool by_step_before;
  std::size_t workers;
  double update_s;
  bool advised;
};

Layout two_large_tensors() {
  std::vector<LayoutEntry> entries(2);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    entries[i].name = "w" + std::to_string(i);
    entries[i].shape = {1 << 20};
  }
  return *Layout::make(entries);
}

// Steps of a second as they are told to the journal.
std::vector<report::AdviceGiven> advice_in(const Case& one) {
  const store::test::TemporaryDirectory dir;
  const Layout layout = two_large_tensors();
  ps::Snapshot snapshot;
  const std::vector<float> zeros(layout.flat_elements());
  for (const Chunk& chunk : layout.chunks())
    snapshot.weights.push_back(SharedBytes::copy_of(std::as_bytes(std::span(zeros).first(chunk.elements))));
  auto server = *ps::Server::make(layout, {ps::OptimizerKind::sgd, {ps::GroupSpec{}}}, {}, one.clip_norm, snapshot);
  if (one.by_step_before) server.clip_by_step_before({});
  engine::CoordinatorOptions options;
  options.train_samples = options.global_batch = 32;
  options.steps = 100;
  Silent output;
  const engine::Coordinator engine(options, std::move(server), output);
  Advised sink;
  auto ledger = store::LedgerWriter::open(dir / "ledger", {1, 1, 32, 32, "data"});
  EXPECT_TRUE(ledger) << message(ledger);
  JournalOptions journal_options;
  journal_options.run_dir = dir.path().string();
  journal_options.mark_every = 1000;
  Journal journal(journal_options, engine, std::move(*ledger), std::make_shared<RedoBudget>(), sink,
                  [](const report::Event&) {});
  journal.begin();
  for (std::uint64_t step = 0; step < 40; ++step) {
    engine::StepClosed closed;
    closed.step = step;
    closed.weight = 32;
    report::StepDone done{
        .step = step, .samples = 32, .seconds = 1, .workers = std::vector<report::WorkerPart>(one.workers)};
    done.update_s = one.update_s;
    journal.step(closed, done);
  }
  EXPECT_TRUE(journal.drain());
  return sink.advice;
}

TEST(Journal, SaysOnceWhatClippingByTheWholeGradientCosts) {
  for (const Case& one :
       {Case{"it costs much", 1, false, 2, 0.1, true}, Case{"it costs little", 1, false, 2, 0.01, false},
        Case{"no clipping", 0, false, 2, 0.1, false}, Case{"done already", 1, true, 2, 0.1, false},
        Case{"one worker", 1, false, 1, 0.1, false}}) {
    const std::vector<report::AdviceGiven> advice = advice_in(one);
    ASSERT_EQ(advice.size(), one.advised ? 1U : 0U) << one.what;
    if (!one.advised) continue;
    EXPECT_EQ(advice[0].set, "train.clip_norm_of=previous");
    EXPECT_DOUBLE_EQ(advice[0].step_s, 1);
    EXPECT_GT(advice[0].saves_s, 0.05) << "all but the last chunk";
    EXPECT_LT(advice[0].saves_s, 0.1);
  }
}

}  // namespace
}  // namespace motley::runtime
