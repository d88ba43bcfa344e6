#include "report/event_writer.h"

namespace motley::report {
namespace {

// What a reader that was away has to know in any case. There are few of these in a run.
Importance importance_of(const Event& event) {
  const bool must = std::holds_alternative<RunStarted>(event) || std::holds_alternative<Done>(event) ||
                    std::holds_alternative<Failure>(event);
  return must ? Importance::must_be_said : Importance::may_be_dropped;
}

}  // namespace

EventWriter::~EventWriter() {
  if (dropped_ > 0) static_cast<void>(writer_->write(gap_(dropped_), Importance::must_be_said));
}

void EventWriter::write(const Event& event, std::string lines) {
  if (lines.empty()) return;
  if (dropped_ > 0) lines.insert(0, gap_(dropped_));
  dropped_ = writer_->write(std::move(lines), importance_of(event)) ? 0 : dropped_ + 1;
}

}  // namespace motley::report
