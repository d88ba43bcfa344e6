// Readers that do not read.

#include "report/writer.h"

#include <gtest/gtest.h>

#include <sstream>
#include <thread>

#include "pipe.h"
#include "report/json_sink.h"
#include "report/plain_sink.h"

namespace motley::report {
namespace {

using test::Pipe;

// More than a pipe holds and the writer keeps. Who writes waits for nobody: else no test here would end.
constexpr std::uint64_t kSteps = 20'000;

void run_long(Sink& sink) {
  sink.take(RunStarted{.run = "ff", .steps = kSteps});
  for (std::uint64_t step = 0; step < kSteps; ++step) sink.take(StepDone{.step = step, .loss = 0.5});
  sink.take(Failure{{ErrorCode::disk_full, "no room", ""}});
  sink.take(Done{.steps = kSteps, .checkpoint = "runs/a"});
}

/// What a reader gets that begins to read when all is said.
std::string read_late(Pipe& pipe, std::unique_ptr<Sink> sink) {
  std::string text;
  {
    const std::jthread reader([&] { text = pipe.text(); });
    sink.reset();  // the end: all that waits is written
    pipe.close_in();
  }
  return text;
}

TEST(Writer, AReaderThatComesLateHasTheBeginningTheEndAndTheNumberOfWhatIsMissing) {
  Pipe pipe;
  auto sink = make_json_sink(pipe.writer());
  run_long(*sink);
  std::istringstream lines(read_late(pipe, std::move(sink)));
  std::vector<std::string> kinds;
  std::uint64_t steps = 0, dropped = 0;
  const std::string begins = "{\"event\":\"";
  for (std::string line; std::getline(lines, line);) {
    ASSERT_TRUE(line.starts_with(begins) && line.ends_with("}")) << line;
    kinds.push_back(line.substr(begins.size(), line.find('"', begins.size()) - begins.size()));
    if (kinds.back() == "step") {
      ASSERT_NE(line.find("\"step\":" + std::to_string(steps++) + ","), std::string::npos) << line;
    }
    if (kinds.back() == "dropped") {
      const std::uint64_t missing = std::stoull(line.substr(line.rfind(':') + 1));
      dropped += missing;
      steps += missing;
    }
  }
  EXPECT_EQ(kinds.front(), "run");
  EXPECT_EQ(std::vector(kinds.end() - 3, kinds.end()), (std::vector<std::string>{"dropped", "error", "done"}));
  EXPECT_EQ(steps, kSteps);
  EXPECT_GT((kSteps - dropped) * 100, kUnreadBytesMax / 4);
  EXPECT_GT(dropped, 0U);
}

TEST(Writer, PlainLinesSayWhatIsMissingToo) {
  Pipe pipe;
  auto sink = make_plain_sink(pipe.writer(), 0);
  run_long(*sink);
  for (std::uint64_t step = 0; step < kSteps; ++step) sink->take(StepDone{.step = step});
  const std::string text = read_late(pipe, std::move(sink));
  EXPECT_NE(text.find(" messages are missing here"), std::string::npos);
  EXPECT_NE(text.find("error (disk-full): no room\ndone: 20000 steps"), std::string::npos);
}

TEST(Writer, WhatWaitsIsBoundedAndGoesOnWhenItIsRead) {
  Pipe pipe;
  auto writer = pipe.writer();
  const std::string line(100, 'x');
  std::uint64_t taken = 0;
  while (writer->write(line + "\n", Importance::may_be_dropped)) ++taken;
  EXPECT_LE(writer->waiting(), kUnreadBytesMax);
  EXPECT_TRUE(writer->write("the end\n", Importance::must_be_said));
  std::string text;
  {
    const std::jthread reader([&] { text = pipe.text(); });
    while (!writer->flush(std::chrono::hours(1))) {
    }
    EXPECT_EQ(writer->waiting(), 0U);
    EXPECT_TRUE(writer->write("after it\n", Importance::may_be_dropped)) << "there is room again";
    writer.reset();
    pipe.close_in();
  }
  EXPECT_EQ(text.size(), taken * 101 + 17);
  EXPECT_EQ(text.substr(text.size() - 17), "the end\nafter it\n");
}

TEST(Writer, WhoeverIsInAHurryLeavesWithoutAReader) {
  Pipe pipe;
  auto writer = pipe.writer();
  while (writer->write("a line that nobody reads\n", Importance::may_be_dropped)) {
  }
  writer->hurry();
  EXPECT_TRUE(writer->write("last words\n", Importance::must_be_said));
  writer.reset();  // ends, though nobody reads
}

TEST(Writer, WhereTheReaderHasGoneNothingWaits) {
  Pipe pipe;
  auto writer = pipe.writer();
  while (writer->write("a line that nobody reads\n", Importance::may_be_dropped)) {
  }
  pipe.close_out();
  while (!writer->flush(std::chrono::hours(1))) {
  }
  EXPECT_TRUE(writer->write("for nobody\n", Importance::may_be_dropped));
  EXPECT_EQ(writer->waiting(), 0U);
}

}  // namespace
}  // namespace motley::report
