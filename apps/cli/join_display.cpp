#include "program.h"

namespace motley::cli {

runtime::JoinEvents JoinDisplay::events() {
  runtime::JoinEvents events;
  events.note = [this](const std::string& text) {
    const std::lock_guard lock(mutex_);
    sink_.take(report::Note{text});
  };
  events.link = [this](const std::string& worker, const std::string& device, runtime::LinkChange link,
                       const std::string& why) {
    const std::lock_guard lock(mutex_);
    const bool joined = link == runtime::LinkChange::joined;
    const std::string lost = link == runtime::LinkChange::left ? "left" : "lost";
    const std::string change = joined ? (before_[worker] ? "readmitted" : "joined") : lost;
    before_[worker] = before_[worker] || joined;
    sink_.take(report::WorkerChanged{worker, worker.substr(0, worker.rfind('/')), device, "", change, why});
  };
  events.step = [this](const std::string& worker, std::uint64_t version, std::uint64_t samples) {
    const std::lock_guard lock(mutex_);
    samples_ += samples;
    if (++steps_[worker] % 50 == 0) {
      sink_.take(report::Note{worker + ": step " + std::to_string(version) + ", " + std::to_string(samples_) +
                              " samples so far"});
    }
  };
  return events;
}

std::string left_text(const JoinDisplay& display) {
  return "left; " + std::to_string(display.samples()) + " samples computed here";
}

}  // namespace motley::cli
