#include "sim/shared_links.h"

#include <utility>

namespace motley::sim {

SharedLinks::Stream SharedLinks::open(Machine from, Machine to, Arrived arrived) {
  flows_.push_back({.from = from, .to = to, .arrived = std::move(arrived)});
  return flows_.size() - 1;
}

void SharedLinks::send(Stream stream, wire::Frame frame) {
  Flow& flow = flows_[stream];
  ++frames_;
  flow.waiting.push_back(std::move(frame));
  if (flow.listed) return;
  if (start(stream) && flow.waiting.empty()) return;
  flow.listed = true;
  turns_.push_back(stream);
}

bool SharedLinks::start(Stream stream) {
  Flow& flow = flows_[stream];
  Port &from = machines_[flow.from], &to = machines_[flow.to];
  while (!flow.waiting.empty()) {
    const std::size_t bytes = wire::kHeaderBytes + flow.waiting.front().body.size();
    const bool is_short = bytes <= kShortBytes;
    if (!is_short && (from.sends || to.receives)) return false;
    wire::Frame frame = std::move(flow.waiting.front());
    flow.waiting.pop_front();
    from.carried.out += bytes;
    to.carried.in += bytes;
    if (is_short) {
      deliver(stream, std::move(frame));
      continue;
    }
    from.sends = to.receives = true;
    const Duration takes(static_cast<std::int64_t>(static_cast<double>(bytes) / bytes_per_second_ * 1e9));
    queue_.after(takes, [this, stream, frame = std::move(frame)]() mutable {
      const Flow& sent = flows_[stream];
      machines_[sent.from].sends = machines_[sent.to].receives = false;
      deliver(stream, std::move(frame));
      pump();
    });
    return true;
  }
  return true;
}

void SharedLinks::deliver(Stream stream, wire::Frame frame) {
  queue_.after(delay_,
               [this, stream, frame = std::move(frame)]() mutable { flows_[stream].arrived(std::move(frame)); });
}

void SharedLinks::pump() {
  std::list<Stream> had_theirs;
  for (auto turn = turns_.begin(); turn != turns_.end();) {
    const auto next = std::next(turn);
    if (start(*turn)) {
      if (flows_[*turn].waiting.empty()) {
        flows_[*turn].listed = false;
        turns_.erase(turn);
      } else {
        had_theirs.splice(had_theirs.end(), turns_, turn);
      }
    }
    turn = next;
  }
  turns_.splice(turns_.end(), had_theirs);
}

}  // namespace motley::sim
