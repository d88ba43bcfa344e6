#pragma once
// Who may stay before having proven itself, and who may start a TLS handshake. Pure: the clock is handed in. Private to
// tcp/; guarded by its owner's mutex.

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace motley::transport {

class Admission {
 public:
  /// REQUIRES both are positive.
  Admission(std::size_t max, std::size_t per_source_max) : max_(max), per_source_max_(per_source_max) {}

  /// A newcomer is always let in; the answer is who must go for it: the oldest of its own source when that has too
  /// many, else the oldest of the busiest source when all have. So whoever connects and says nothing is pushed out by
  /// itself, and a good client gets its time.
  [[nodiscard]] std::optional<std::uint64_t> enter(std::uint64_t id, const std::string& source);
  /// Proven or gone. Unknown ids are fine.
  void leave(std::uint64_t id);
  [[nodiscard]] std::size_t size() const noexcept { return waiting_.size(); }

 private:
  struct Guest {
    std::uint64_t id;
    std::string source;
  };
  std::optional<std::uint64_t> evict_oldest_of(const std::string& source);
  [[nodiscard]] std::size_t count_of(const std::string& source) const;
  [[nodiscard]] std::string busiest() const;

  std::size_t max_, per_source_max_;
  std::vector<Guest> waiting_;  // oldest first; never more than max_
};

/// Handshakes in the order of arrival, but of those who are known first, at most so many a second (a second's worth may
/// come at once).
class HandshakeGate {
 public:
  using Instant = std::chrono::steady_clock::time_point;
  HandshakeGate(std::size_t per_second_max, Instant now);

  void enter(std::uint64_t id, bool known) { (known ? known_ : strangers_).push_back(id); }
  void leave(std::uint64_t id);
  /// The next one to start now, if there is one and its time has come.
  [[nodiscard]] std::optional<std::uint64_t> next(Instant now);
  /// How long until next() can have an answer; nothing when nobody waits.
  [[nodiscard]] std::optional<std::chrono::nanoseconds> wait(Instant now) const;

 private:
  [[nodiscard]] bool empty() const { return known_.empty() && strangers_.empty(); }

  std::chrono::nanoseconds interval_;
  std::chrono::nanoseconds credit_max_;
  Instant paid_until_;  // never further back than credit_max_
  std::deque<std::uint64_t> known_, strangers_;
};

}  // namespace motley::transport
