// What the sinks write, read back through a pipe.

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

#include "pipe.h"
#include "report/json_sink.h"
#include "report/plain_sink.h"
#include "report/terminal_sink.h"
#include "some_events.h"

namespace motley::report {
namespace {

using test::Pipe;

std::string written(Pipe& pipe) {
  pipe.settle();
  pipe.close_in();
  return pipe.text();
}

StepDone a_step() {
  StepDone step;
  step.step = 4;
  step.loss = 0.1234567;
  step.samples = 256;
  step.seconds = 0.5;
  step.samples_per_s = 512;
  step.workers = {{"laptop/cpu", 256, 0.4, 0.1, 0.6, 1000, 2000}};
  return step;
}

TEST(JsonSink, WhoIsParkedIsExcludedForProgramsAndSaysSo) {
  Pipe pipe;
  const auto sink = make_json_sink(pipe.writer());
  sink->take(WorkerChanged{"laptop/cpu", "laptop", "cpu", "4 cores", "parked", "it is slow"});
  sink->take(WorkerChanged{"laptop/cpu", "laptop", "cpu", "4 cores", "excluded", "struck out"});
  const std::string text = written(pipe);
  const std::string first = text.substr(0, text.find('\n'));
  EXPECT_NE(first.find(R"("change":"excluded")"), std::string::npos) << first;
  EXPECT_NE(first.find(R"("parked":true)"), std::string::npos) << first;
  EXPECT_NE(text.find(R"("parked":false)", first.size()), std::string::npos) << text;
}

TEST(PlainSink, WhoIsParkedIsNotStruckOut) {
  Pipe pipe;
  make_plain_sink(pipe.writer(), 0)->take(WorkerChanged{"laptop/cpu", "laptop", "cpu", "", "parked", "it is slow"});
  EXPECT_EQ(written(pipe), "laptop/cpu parked: it is slow\n");
}

std::string slurp(const std::string& name) {
  std::ifstream file(std::string(MOTLEY_TEST_DATA "/") + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(JsonSink, WritesWhatProgramsReadToTheByte) {
  Pipe pipe;
  const auto sink = make_json_sink(pipe.writer());
  for (const Event& event : test::some_events()) sink->take(event);
  sink->take(EvalPointReached{.epoch = 1, .version = 235});
  sink->take(Paused{.version = 235});
  EXPECT_EQ(written(pipe), slurp("events.jsonl"));
}

TEST(PlainSink, WritesWhatPeopleReadToTheByte) {
  Pipe pipe;
  const auto sink = make_plain_sink(pipe.writer(), 0);
  for (const Event& event : test::some_events()) sink->take(event);
  sink->take(EvalPointReached{.epoch = 1, .version = 235});
  sink->take(Paused{.version = 235});
  EXPECT_EQ(written(pipe), slurp("events.txt"));
}

TEST(JsonSink, WritesOneObjectALine) {
  Pipe pipe;
  const auto sink = make_json_sink(pipe.writer());
  sink->take(a_step());
  sink->take(CheckpointWritten{5, "runs/a/checkpoints/step-000000005"});
  sink->take(Note{"for people only"});
  EXPECT_EQ(
      written(pipe),
      "{\"event\":\"step\",\"step\":4,\"epoch\":0,\"loss\":0.1234567,\"samples\":256,\"seconds\":0.5,\"samples_per_s\":"
      "512.0,"
      "\"learning_rate\":0.0,\"noise_scale\":null,\"global_batch\":0,\"steps\":0,\"update_s\":0.0,\"workers\":[{"
      "\"worker\":"
      "\"laptop/cpu\",\"samples\":256,\"compute_s\":0.4,\"wait_s\":0.1,\"finish_s\":0.6,"
      "\"sent_bytes\":1000,\"received_bytes\":2000}]}\n"
      "{\"event\":\"checkpoint\",\"step\":5,\"path\":\"runs/a/checkpoints/step-000000005\"}\n");
}

PlanMade a_plan() {
  PlanMade plan;
  plan.global_batch = 256;
  plan.step_s = 0.1;
  plan.samples_per_s = 2560;
  plan.fastest_alone = "desktop/cpu";
  plan.fastest_alone_samples_per_s = 2000;
  plan.shares = {{"desktop/cpu", 256, 2000, 0.1, 0, "fp32"}};
  plan.recommendation = "use desktop/cpu: nobody else has joined";
  plan.limit = "computing on desktop/cpu";
  plan.noise = {100, 812.5, 278.6};
  return plan;
}

TEST(JsonSink, APlanNamesSharesAndTheFastestAlone) {
  Pipe pipe;
  make_json_sink(pipe.writer())->take(a_plan());
  EXPECT_EQ(
      written(pipe),
      "{\"event\":\"plan\",\"global_batch\":256,\"predicted\":{\"samples_per_s\":2560.0,\"step_s\":0.1},"
      "\"fastest_alone\":{\"worker\":\"desktop/cpu\",\"samples_per_s\":2000.0},\"shares\":{\"desktop/cpu\":256},"
      "\"outlook\":[{\"worker\":\"desktop/cpu\",\"samples\":256,\"alone_samples_per_s\":2000.0,\"compute_s\":0.1,"
      "\"exposed_s\":0.0,\"codec\":\"fp32\"}],\"recommendation\":\"use desktop/cpu: nobody else has joined\",\"limit\":"
      "\"computing on desktop/cpu\",\"noise_scale\":812.5,\"useful_global_batch\":279}\n");
}

TEST(JsonSink, APlanSaysWhatLinksCarryWhereThatIsKnown) {
  Pipe pipe;
  PlanMade plan = a_plan();
  plan.shares = {{"a", 1, 1, 1, 0, "fp32", 6.25e6, 0}, {"b", 1, 1, 1, 0, "fp32", 0, 1.2e7}};
  make_json_sink(pipe.writer())->take(plan);
  const std::string text = written(pipe);
  EXPECT_NE(text.find("\"codec\":\"fp32\",\"up_bytes_per_s\":6250000},{\"worker\":\"b\""), std::string::npos) << text;
  EXPECT_NE(text.find("\"codec\":\"fp32\",\"down_bytes_per_s\":12000000}]"), std::string::npos) << text;
}

TEST(PlainSink, APlanSaysWhatToDo) {
  Pipe pipe;
  make_plain_sink(pipe.writer())->take(a_plan());
  EXPECT_EQ(written(pipe), "plan for 256 samples a step: 2560 samples/s; use desktop/cpu: nobody else has joined\n");
}

TEST(JsonSink, NotANumberIsNull) {
  Pipe pipe;
  StepDone step = a_step();
  step.loss = std::nan("");
  make_json_sink(pipe.writer())->take(step);
  EXPECT_NE(written(pipe).find("\"loss\":null"), std::string::npos);
}

TEST(JsonSink, BadUtf8DoesNotBreakALine) {
  Pipe pipe;
  make_json_sink(pipe.writer())->take(Failure{{ErrorCode::input, "name \xff\xfe\n", ""}});
  const std::string text = written(pipe);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_NE(text.find("\"code\":\"input\""), std::string::npos);
}

TEST(PlainSink, SaysErrorsWithWhatToTry) {
  Pipe pipe;
  make_plain_sink(pipe.writer())->take(Failure{{ErrorCode::busy, "port 7117 is in use", "--listen :7118"}});
  EXPECT_EQ(written(pipe), "error (busy): port 7117 is in use\n  try: --listen :7118\n");
}

std::string last_words(const Noise& noise) {
  Pipe pipe;
  Done done;
  done.noise = noise;
  make_plain_sink(pipe.writer())->take(done);
  return written(pipe);
}

TEST(PlainSink, SaysAtTheEndWhatIsKnownOfTheNoise) {
  EXPECT_NE(
      last_words({100, 812.5, 278.6})
          .find("gradient noise scale: 812 samples; a global batch of about 279 makes the most progress a second"),
      std::string::npos);
  EXPECT_NE(last_words({5, 0, 0}).find("too few or too noisy"), std::string::npos);
  EXPECT_NE(last_words({}).find("it needs a second worker"), std::string::npos);
}

TEST(PlainSink, LimitsStepLinesButNotTheLast) {
  Pipe pipe;
  const auto sink = make_plain_sink(pipe.writer(), 1e9);
  RunStarted run;
  run.steps = 6;
  sink->take(run);
  StepDone step = a_step();
  step.step = 3;
  sink->take(step);
  step.step = 4;
  sink->take(step);
  step.step = 5;
  sink->take(step);
  const std::string text = written(pipe);
  EXPECT_EQ(text.find("step 5/6"), std::string::npos);
  EXPECT_NE(text.find("step 6/6  loss 0.123457"), std::string::npos);
}

TEST(TerminalSink, LeavesTheLastWordToPlainText) {
  Pipe pipe;
  {
    const auto sink = make_terminal_sink(pipe.writer());
    RunStarted run;
    run.name = "fashion-cnn";
    run.steps = 5;
    run.global_batch = 256;
    sink->take(run);
    sink->take(a_step());
    Done done;
    done.steps = 5;
    done.checkpoint = "runs/a/checkpoints/step-000000005";
    sink->take(done);
  }
  const std::string text = written(pipe);
  EXPECT_NE(text.find("step 5/5"), std::string::npos);
  EXPECT_NE(text.find("laptop/cpu"), std::string::npos);
  EXPECT_EQ(text.substr(text.rfind("checkpoint: ")), "checkpoint: runs/a/checkpoints/step-000000005\n");
}

/// What is written when others have written a line of theirs; `begun`: another one that has no end yet.
std::string after_others(const std::string& begun) {
  Pipe pipe;
  {
    const auto display = make_terminal_sink(pipe.writer());
    RunStarted run;
    run.steps = 5;
    run.global_batch = 256;
    display->take(run);
    display->take(a_step());
    display->hide();
    display->take(Note{"of the run"});
    EXPECT_EQ(write(pipe.in(), "theirs\n", 7), 7);
    display->show(begun);
    display->end();
    display->end();
    display->take(Note{"behind it"});
  }
  const std::string text = written(pipe);
  const std::size_t at = text.rfind("theirs\n");
  EXPECT_EQ(text.substr(at, 18), "theirs\nof the run\n") << "the run writes nothing while it is hidden";
  return text.substr(at + 18);
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(TerminalSink, IsHiddenWhileOthersWrite) {
  const std::string text = after_others("");
  EXPECT_EQ(text.substr(0, 9), "\x1b[?7l\x1b[2K");
  EXPECT_EQ(count(text, "step 5/5"), 1U) << "drawn again without need: " << text;
  EXPECT_EQ(text.substr(text.size() - 15), "\x1b[?7hbehind it\n");
}

TEST(TerminalSink, WhatOthersHaveBegunMovesAlongUntilTheEnd) {
  const std::string text = after_others("half a line");
  EXPECT_EQ(count(text, "\x1b[2Khalf a line\n"), 1U) << text;
  EXPECT_EQ(count(text, "step 5/5"), 2U) << text;
  EXPECT_LT(text.find("half a line"), text.find("step 5/5"));
}

}  // namespace
}  // namespace motley::report
