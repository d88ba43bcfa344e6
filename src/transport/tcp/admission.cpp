#include "transport/tcp/admission.h"

#include <algorithm>

#include "base/assert.h"

namespace motley::transport {

std::optional<std::uint64_t> Admission::enter(std::uint64_t id, const std::string& source) {
  MOTLEY_ASSERT(max_ > 0 && per_source_max_ > 0);
  std::optional<std::uint64_t> evicted;
  if (count_of(source) >= per_source_max_) {
    evicted = evict_oldest_of(source);
  } else if (waiting_.size() >= max_) {
    evicted = evict_oldest_of(busiest());
  }
  waiting_.push_back({id, source});
  MOTLEY_ASSERT(waiting_.size() <= max_);
  return evicted;
}

void Admission::leave(std::uint64_t id) {
  std::erase_if(waiting_, [id](const Guest& guest) { return guest.id == id; });
}

std::optional<std::uint64_t> Admission::evict_oldest_of(const std::string& source) {
  const auto oldest =
      std::find_if(waiting_.begin(), waiting_.end(), [&](const Guest& guest) { return guest.source == source; });
  if (oldest == waiting_.end()) return std::nullopt;
  const std::uint64_t id = oldest->id;
  waiting_.erase(oldest);
  return id;
}

std::size_t Admission::count_of(const std::string& source) const {
  return static_cast<std::size_t>(
      std::count_if(waiting_.begin(), waiting_.end(), [&](const Guest& guest) { return guest.source == source; }));
}

/// Of equally busy sources the one that came first.
std::string Admission::busiest() const {
  std::string source;
  std::size_t most = 0;
  for (const Guest& guest : waiting_) {
    const std::size_t count = count_of(guest.source);
    if (count > most) {
      most = count;
      source = guest.source;
    }
  }
  return source;
}

HandshakeGate::HandshakeGate(std::size_t per_second_max, Instant now)
    : interval_(std::chrono::nanoseconds(std::chrono::seconds(1)) / per_second_max),
      credit_max_(std::chrono::seconds(1)),
      paid_until_(now - credit_max_) {}

void HandshakeGate::leave(std::uint64_t id) {
  std::erase(known_, id);
  std::erase(strangers_, id);
}

std::optional<std::uint64_t> HandshakeGate::next(Instant now) {
  if (empty()) return std::nullopt;
  paid_until_ = std::max(paid_until_, now - credit_max_);
  if (paid_until_ + interval_ > now) return std::nullopt;
  paid_until_ += interval_;
  std::deque<std::uint64_t>& queue = known_.empty() ? strangers_ : known_;
  const std::uint64_t id = queue.front();
  queue.pop_front();
  return id;
}

std::optional<std::chrono::nanoseconds> HandshakeGate::wait(Instant now) const {
  if (empty()) return std::nullopt;
  return std::max<std::chrono::nanoseconds>(paid_until_ + interval_ - now, std::chrono::nanoseconds(0));
}

}  // namespace motley::transport
