#pragma once
// Who takes part: measured beside the run, taken in where it shortens the work, parked where it would hold up the
// others. It decides; Attendance does what follows. `samples` is the work that is shared, again and again. One thread
// at a time.

#include <cstdint>
#include <vector>

#include "fleet/roster.h"
#include "fleet/speeds.h"

namespace motley::fleet {

/// Why somebody is taken in or parked.
struct Cause {
  enum class Kind : std::uint8_t { pays, does_not_pay, compared, nobody_else } kind = Kind::pays;
  WorkerId worker = 0;  // whom it is about; `compared`: who is alone for a moment
  Verdict verdict{};    // does_not_pay
};

/// What Parking wants done, at once.
class Attendance {
 public:
  virtual ~Attendance() = default;
  virtual void calibrate(Member& member, std::uint64_t samples) = 0;
  /// It takes part from now on.
  virtual void take_in(Member& member, const Cause& cause) = 0;
  /// It gets nothing to do from now on. `told`: the user knows of it.
  virtual void park(Member& member, const Cause& cause, bool told) = 0;
  /// Sends to a parked one what shows how fast its link is; false if there is nothing new to send.
  virtual bool try_link(Member& member) = 0;
};

class Parking {
 public:
  /// REQUIRES all outlive this.
  Parking(Roster& roster, Speeds& speeds, Attendance& attendance, Duration measure_again)
      : roster_(roster), speeds_(speeds), attendance_(attendance), measure_again_(measure_again) {}

  /// More is known of its speed: it is measured further, taken in or parked. `alone`: nobody else is waited for.
  void consider(Member& member, std::uint64_t samples, bool alone, Time now);
  /// Of a parked one whose time has come.
  void watch(Member& member, std::uint64_t samples, WorkerId alone, Time now);
  /// What try_link() sent is there.
  void link_answered(Member& member, Time now);
  /// After shared work: who had no share in it for a while.
  void park_idle(std::uint64_t samples, Time now);
  /// After shared work that took `pass`: whether one device of the head could do without the others.
  void park_others(std::uint64_t samples, Duration pass, Time now);
  void take_in_parked();

 private:
  void park(Member& member, const Cause& cause, Time now);
  void park_least(WorkerId alone, const Verdict& verdict, Time now);
  void rest(Member& member, const Verdict& verdict, Time now);
  void end_comparison(std::uint64_t samples, WorkerId alone, Time now);
  void try_link(Member& member, Time now);
  [[nodiscard]] Verdict judge(const Member& member, std::uint64_t samples);

  Roster& roster_;
  Speeds& speeds_;
  Attendance& attendance_;
  Duration measure_again_;
  std::vector<WorkerId> others_;  // kept for its memory
};

}  // namespace motley::fleet
