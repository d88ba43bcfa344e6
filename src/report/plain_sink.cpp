#include "report/plain_sink.h"

#include <chrono>

#include "base/format.h"
#include "report/event_writer.h"
#include "report/lines.h"

namespace motley::report {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kWaitsLong{2};

class PlainSink final : public Sink {
 public:
  PlainSink(std::shared_ptr<Writer> writer, double seconds_between)
      : out_(std::move(writer), gap), between_(seconds_between) {}

  void take(const Event& event) override {
    std::visit(overloaded{[&](const RunStarted& e) {
                            steps_ = e.steps;
                            say(event);
                          },
                          [&](const StepDone& e) { step(e); }, [&](const Waiting& e) { waiting(e); },
                          [&](const auto&) { say(event); }},
               event);
  }

 private:
  static std::string gap(std::uint64_t dropped) {
    return formatted("(%llu messages are missing here: nobody read them in time)\n",
                     static_cast<unsigned long long>(dropped));
  }
  void say(const Event& event) { out_.write(event, lines_of(event)); }
  void step(const StepDone& e) {
    if (e.steps > 0) steps_ = e.steps;
    const auto now = Clock::now();
    if (std::chrono::duration<double>(now - last_).count() < between_ && e.step + 1 != steps_) return;
    last_ = now;
    StepDone shown = e;
    shown.steps = steps_;
    say(shown);
  }
  // What still holds the run up after a while is worth a line; what changes every second is not.
  void waiting(const Waiting& e) {
    if (e.text != waiting_) {
      waiting_ = e.text;
      waiting_since_ = Clock::now();
      said_waiting_ = false;
    } else if (!said_waiting_ && !e.text.empty() && Clock::now() - waiting_since_ > kWaitsLong) {
      said_waiting_ = true;
      say(Note{e.text});
    }
  }

  EventWriter out_;
  double between_;
  std::uint64_t steps_ = 0;
  Clock::time_point last_{};
  std::string waiting_;
  Clock::time_point waiting_since_{};
  bool said_waiting_ = false;
};

}  // namespace

std::unique_ptr<Sink> make_plain_sink(std::shared_ptr<Writer> writer, double seconds_between) {
  return std::make_unique<PlainSink>(std::move(writer), seconds_between);
}

}  // namespace motley::report
