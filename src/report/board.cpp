#include "report/board.h"

#include <algorithm>

#include "report/lines.h"

namespace motley::report {
namespace {

constexpr double kSmoothing = 0.05;  // of samples/s, for the time left

void forget_one(std::map<std::string, Board::Worker>& workers) {
  const auto oldest = std::ranges::min_element(workers, {}, [](const auto& entry) {
    return std::pair(entry.second.present, entry.second.changed);  // who is here goes last
  });
  workers.erase(oldest);
}

Board::Worker& worker_of(Board& board, const std::string& name) {
  const auto found = board.workers.find(name);
  if (found != board.workers.end()) return found->second;
  if (board.workers.size() >= kBoardWorkersMax) forget_one(board.workers);
  return board.workers[name];
}

void take(Board& board, const RunStarted& e) {
  board.run = e;
  board.steps_done = e.first_step;
}

void take(Board& board, const WorkerChanged& e) {
  Board::Worker& worker = worker_of(board, e.worker);
  worker.machine = e.machine;
  worker.device = e.device;
  worker.description = e.description;
  worker.change = e.change;
  worker.reason = e.reason;
  worker.present = e.change == "joined" || e.change == "readmitted";
  worker.changed = ++board.changes;
  if (!worker.present) worker.part = {};
}

void take(Board& board, const StepDone& e) {
  board.step = e;
  board.steps_done = e.step + 1;
  if (board.run && e.steps > 0) board.run->steps = e.steps;
  if (board.run && e.global_batch > 0) board.run->global_batch = e.global_batch;
  board.samples_per_s += (board.samples_per_s > 0 ? kSmoothing : 1) * (e.samples_per_s - board.samples_per_s);
  board.loss.add(e.step, e.loss);
  board.learning_rate.add(e.step, e.learning_rate);
  board.speed.add(e.step, e.samples_per_s);
  for (auto& [name, worker] : board.workers) worker.part = {};
  for (const WorkerPart& part : e.workers) {
    Board::Worker& worker = worker_of(board, part.worker);
    worker.present = true;
    worker.part = part;
    worker.sent_bytes += part.sent_bytes;
    worker.received_bytes += part.received_bytes;
  }
}

void take(Board& board, const EvalDone& e) {
  board.evaluation = e;
  board.test_loss.add(e.step, e.loss);
  if (e.has_accuracy) board.accuracy.add(e.step, e.accuracy);
  for (const auto& [name, mean] : e.scores)
    if (board.scores.contains(name) || board.scores.size() < kBoardScoresMax) board.scores[name].add(e.step, mean);
}

void take(Board& board, const PlanMade& e) { board.plan = e; }
void take(Board& board, const CheckpointWritten& e) { board.checkpoint = e; }
void take(Board& board, const Done& e) { board.done = e; }
void take(Board& board, const Waiting& e) { board.waiting = e.text; }
void take(Board&, const EvalPointReached&) {}
void take(Board&, const Paused&) {}
void take(Board&, const CodeShown&) {}
void take(Board&, const Failure&) {}  // its message is all there is to it
void take(Board&, const Note&) {}
void take(Board&, const AdviceGiven&) {}
void take(Board&, const ModeChosen&) {}

// What is worth a line beside the rest of the board.
bool is_message(const Event& event) {
  return std::visit(
      overloaded{[](const StepDone&) { return false; },
                 // Later ones are routine; the end names the last.
                 [](const CheckpointWritten& e) { return e.step == 0; }, [](const auto&) { return true; }},
      event);
}

}  // namespace

void fold(Board& board, const Event& event) {
  std::visit([&board](const auto& e) { take(board, e); }, event);
  if (!is_message(event)) return;
  std::string lines = lines_of(event);
  if (lines.empty()) return;
  if (lines.size() > kBoardMessageMax) lines.replace(kBoardMessageMax, std::string::npos, "…\n");
  board.messages.push_back({++board.messages_said, std::move(lines)});
  if (board.messages.size() > kBoardMessagesMax) board.messages.pop_front();
}

}  // namespace motley::report
