#pragma once
// What links carry, learned from transfers while a run goes on. Pure.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace motley::plan {

/// Seconds of a whole version on its way to a joiner: what is shorter is measured better, and at less cost, by a first
/// pass.
inline constexpr double kSlowVersion = 0.3;
/// What is known of the link of a worker without a share is multiplied by this with each of its trials, some seconds
/// apart, so that it is given another chance in the end.
inline constexpr double kFade = 0.97;

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

/// The link of the coordinator, which all transfers share, known once it was seen to hold them up: beside others
/// senders are clearly slower than before, and none of them clearly slower than the others, as on a link that is shared
/// fairly. It carries what came through meanwhile; more that is seen later is believed at once.
class SharedLink {
 public:
  /// In the pass before the one that is open: its worker tells of it in that. REQUIRES begin < end.
  void sent(const Sender& sender) { sent_.push_back(sender); }
  /// The open pass, in which so many remote workers had a share. Says nothing unless all those of the pass before told.
  void closed(std::size_t senders);
  /// While nobody tries whether it still is so slow: of so many workers without a share each one calls it in its turn.
  void fade(std::size_t waiting) noexcept;
  [[nodiscard]] std::optional<double> bytes_per_second() const noexcept { return speed_; }
  /// That it is busy with so many bytes; 0: not known.
  [[nodiscard]] double seconds(double bytes) const noexcept { return speed_ ? bytes / *speed_ : 0; }

 private:
  void record(std::span<const Sender> senders) noexcept;

  std::vector<Sender> sent_;
  std::size_t senders_ = 0;    // of the pass before
  std::uint32_t held_up_ = 0;  // records, since one in which nobody was
  double most_ = 0;            // in these
  std::optional<double> speed_;
};

}  // namespace motley::plan
