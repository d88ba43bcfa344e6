#include "runtime/head/journal.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <utility>
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

// What a journal advised of what it was told.
std::vector<report::AdviceGiven> advice_of(JournalOptions journal_options, double clip_norm, bool by_step_before,
                                           const std::function<void(Journal&)>& tell) {
  const store::test::TemporaryDirectory dir;
  const Layout layout = two_large_tensors();
  ps::Snapshot snapshot;
  const std::vector<float> zeros(layout.flat_elements());
  for (const Chunk& chunk : layout.chunks())
    snapshot.weights.push_back(SharedBytes::copy_of(std::as_bytes(std::span(zeros).first(chunk.elements))));
  auto server = *ps::Server::make(layout, {ps::OptimizerKind::sgd, {ps::GroupSpec{}}}, {}, clip_norm, snapshot);
  if (by_step_before) server.clip_by_step_before({});
  engine::CoordinatorOptions options;
  options.train_samples = options.global_batch = 32;
  options.steps = 100;
  Silent output;
  engine::Coordinator engine(options, std::move(server), output);
  Advised sink;
  auto ledger = store::LedgerWriter::open(dir / "ledger", {1, 1, 32, 32, "data"});
  EXPECT_TRUE(ledger) << message(ledger);
  journal_options.run_dir = dir.path().string();
  journal_options.eval_point_every = 1000;
  Journal journal(std::move(journal_options), engine, std::move(*ledger), sink, [](const report::Event&) {});
  journal.begin();
  tell(journal);
  EXPECT_TRUE(journal.drain());
  return sink.advice;
}

// Steps of a second as they are told to the journal.
std::vector<report::AdviceGiven> advice_in(const Case& one) {
  return advice_of({}, one.clip_norm, one.by_step_before, [&](Journal& journal) {
    for (std::uint64_t step = 0; step < 40; ++step) {
      engine::StepClosed closed;
      closed.step = step;
      closed.weight = 32;
      report::StepDone done{
          .step = step, .samples = 32, .seconds = 1, .workers = std::vector<report::WorkerPart>(one.workers)};
      done.update_s = one.update_s;
      journal.step(closed, done);
    }
  });
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

// Of two devices of 30 and 10 samples a second: so many samples a second together.
engine::Planned planned(std::uint64_t samples, double samples_per_second, std::uint64_t of_the_slow_one) {
  engine::Planned plan;
  plan.global_batch = samples;
  plan.step = {static_cast<double>(samples) / samples_per_second, samples_per_second};
  plan.workers = {{.name = "fast", .samples = samples - of_the_slow_one, .alone_samples_per_second = 30},
                  {.name = "slow", .samples = of_the_slow_one, .alone_samples_per_second = 10}};
  return plan;
}

TEST(Journal, SaysOnceThatRoundsWouldPay) {
  const engine::Planned alone = planned(40, 30, 0), together = planned(40, 39, 10), round = planned(1200, 38, 300);
  const auto said = [](const engine::Planned& exact, const std::optional<engine::Planned>& rounds) {
    JournalOptions options;
    options.rounds_possible = 30;
    return advice_of(std::move(options), 0, false, [&](Journal& journal) {
      journal.planned(exact, rounds);
      journal.planned(exact, rounds);
    });
  };
  const std::vector<report::AdviceGiven> advice = said(alone, round);
  ASSERT_EQ(advice.size(), 1U);
  EXPECT_EQ(advice[0].set, "train.mode=rounds");
  EXPECT_NE(advice[0].sentence.find("not tested for this kind of model"), std::string::npos) << advice[0].sentence;
  EXPECT_TRUE(said(together, round).empty());
  EXPECT_TRUE(said(alone, std::nullopt).empty());
}

}  // namespace
}  // namespace motley::runtime
