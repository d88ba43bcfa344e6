// What a viewer who comes late sees.

#include "report/board.h"

#include <gtest/gtest.h>

#include "report/screen.h"
#include "some_events.h"

namespace motley::report {
namespace {

Board board_of(const std::vector<Event>& events) {
  Board board;
  for (const Event& event : events) fold(board, event);
  return board;
}

TEST(Board, HasTheStateOfTheRun) {
  const Board board = board_of(test::some_events());
  EXPECT_EQ(board.run->name, "fashion-cnn");
  EXPECT_EQ(board.run->steps, 7U) << "as the newest step says";
  EXPECT_EQ(board.steps_done, 7U);
  EXPECT_EQ(board.step->loss, 1e-7);
  EXPECT_EQ(board.loss.buckets().size(), 3U);
  EXPECT_EQ(board.plan->global_batch, 1U) << "the newest";
  EXPECT_EQ(board.checkpoint->step, 7U);
  EXPECT_EQ(board.test_loss.buckets().back().last, 0.25);
  EXPECT_EQ(board.accuracy.buckets().size(), 1U);
  EXPECT_TRUE(board.scores.contains("accuracy"));
  EXPECT_EQ(board.samples_per_s, 512);
  EXPECT_TRUE(board.waiting.empty());
  EXPECT_EQ(board.done->steps, 1U);
}

TEST(Board, KnowsWhoIsHereWhoWasAndWhatTheyDid) {
  const Board board = board_of(test::some_events());
  const Board::Worker& desktop = board.workers.at("desktop/cuda:0");
  EXPECT_TRUE(desktop.present);
  EXPECT_EQ(desktop.part.samples, 200U);
  EXPECT_EQ(desktop.sent_bytes, 2000U) << "of both steps that say";
  EXPECT_EQ(board.workers.at("a stranger").change, "refused");
}

TEST(Board, WhoTakesNoPartInTheNewestStepHasNone) {
  std::vector<Event> events = test::of_steps();
  StepDone alone;
  alone.step = 7;
  alone.workers = {{"laptop/cpu", 256}};
  events.push_back(alone);
  const Board board = board_of(events);
  EXPECT_EQ(board.workers.at("desktop/cuda:0").part.samples, 0U);
  EXPECT_TRUE(board.workers.at("desktop/cuda:0").present);
  EXPECT_EQ(board.workers.at("laptop/cpu").part.samples, 256U);
}

TEST(Board, KeepsMessagesInOrderAndTheirNumbers) {
  const Board board = board_of(test::some_events());
  EXPECT_EQ(board.messages.front().lines, "run 2 of the script, in runs/a\n");
  for (std::size_t i = 0; i < board.messages.size(); ++i) EXPECT_EQ(board.messages[i].number, i + 1);
  for (const Board::Message& message : board.messages) {
    EXPECT_EQ(message.lines.find("checkpoint of step 7"), std::string::npos) << "routine";
    EXPECT_EQ(message.lines.find("samples/s  desktop"), std::string::npos) << "steps are curves";
  }
}

TEST(Board, IsBoundedHoweverLongTheRun) {
  Board board;
  fold(board, WorkerChanged{.worker = "here", .change = "joined"});
  for (std::uint64_t i = 0; i < 3 * kBoardWorkersMax; ++i) {
    fold(board, WorkerChanged{.worker = "guest " + std::to_string(i), .change = "left"});
    fold(board, EvalDone{.step = i, .scores = {{"score " + std::to_string(i), 1}}});
  }
  fold(board, Note{std::string(std::size_t{2} * kBoardMessageMax, 'x')});
  EXPECT_EQ(board.workers.size(), kBoardWorkersMax);
  EXPECT_TRUE(board.workers.contains("here")) << "who is here is not forgotten for who was";
  EXPECT_FALSE(board.workers.contains("guest 0"));
  EXPECT_TRUE(board.workers.contains("guest " + std::to_string(3 * kBoardWorkersMax - 1)));
  EXPECT_EQ(board.messages.size(), kBoardMessagesMax);
  EXPECT_LE(board.messages.back().lines.size(), kBoardMessageMax + 8);
  EXPECT_EQ(board.scores.size(), kBoardScoresMax);
}

TEST(Screen, ShowsWhatTheBoardHas) {
  std::vector<Event> events = test::of_the_start();
  for (const Event& event : test::of_steps()) events.push_back(event);
  const std::vector<std::string> lines = screen_of(board_of(events));
  ASSERT_EQ(lines.size(), 6U);
  EXPECT_NE(lines[0].find("100 %  step 7/7  epoch 1"), std::string::npos) << lines[0];
  EXPECT_NE(lines[1].find("loss 0.0000"), std::string::npos) << lines[1];
  EXPECT_EQ(lines[2], "  a stranger  refused");
  EXPECT_NE(lines[3].find("desktop/cuda:0    200 samples   78 %  computes 400 ms, waits 100 ms  3.0 kB"),
            std::string::npos)
      << lines[3];
  EXPECT_EQ(lines[5], "  waiting for laptop/cpu (87 of 128 samples)");
}

TEST(Screen, OfARunThatOnlyMeasures) {
  const std::vector<std::string> lines = screen_of(board_of({RunStarted{}}));
  EXPECT_EQ(lines[0], "  measuring");
}

}  // namespace
}  // namespace motley::report
