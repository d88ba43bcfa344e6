#pragma once
// What links carry, learned from transfers while a run goes on. Pure.

#include <cstdint>
#include <optional>
#include <span>

namespace motley::plan {

/// What was handed to a connection, and when.
struct Departure {
  std::uint64_t bytes = 0;
  double at = 0;  // seconds
};
struct Transfer {
  std::uint64_t bytes = 0;
  double seconds = 0;
};

/// The end of a message during which the wire was never idle: of all its ends the one that went fastest, because before
/// it the wire had nothing to do. Empty where that is less than half of the bytes: then something else was waited for.
Transfer busy_part(std::span<const Departure> departures, double arrived) noexcept;

/// One direction of a worker's link. A transfer says what the link carries at the least: others may have used it, too.
/// So a faster one is believed soon, and a slower one when it is seen again and again.
class LinkModel {
 public:
  /// What took so little time that it tells of delays rather than of the link says nothing; nor does nonsense.
  static bool tells(const Transfer& transfer) noexcept;
  void record(const Transfer& transfer) noexcept;
  [[nodiscard]] std::optional<double> bytes_per_second() const noexcept { return speed_; }

 private:
  std::optional<double> speed_;
};

/// One of those that sent in the same pass.
struct Sender {
  double begin = 0, end = 0;  // seconds; it waited for the wire all the time
  double bytes = 0;
  double before = 0;  // bytes a second it was known to reach
  [[nodiscard]] double speed() const noexcept { return bytes / (end - begin); }
};

/// The link that all transfers share, known once it was seen to hold them up: beside others senders are clearly slower
/// than before, and none of them clearly slower than the others, as on a link that is shared fairly. It carries what
/// came through meanwhile; more that is seen later is believed at once.
class SharedLink {
 public:
  /// All that sent in a pass. REQUIRES begin < end.
  void record(std::span<const Sender> senders) noexcept;
  /// While nobody tries whether it still is so slow.
  void fade() noexcept;
  [[nodiscard]] std::optional<double> bytes_per_second() const noexcept { return speed_; }

 private:
  std::uint32_t held_up_ = 0;  // records, since one in which nobody was
  double most_ = 0;            // in these
  std::optional<double> speed_;
};

}  // namespace motley::plan
