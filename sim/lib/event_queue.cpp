#include "sim/event_queue.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace motley::sim {

void EventQueue::at(Time time, Action action) { entries_.push({std::max(time, now_), sequence_++, std::move(action)}); }

bool EventQueue::step() {
  if (entries_.empty()) return false;
  // The action may add entries, so it is taken out first; top() is const only to protect the order, which pop() ends.
  Entry entry = std::move(const_cast<Entry&>(entries_.top()));
  entries_.pop();
  MOTLEY_ASSERT(entry.time >= now_);
  now_ = entry.time;
  ++happened_;
  entry.action();
  return true;
}

}  // namespace motley::sim
