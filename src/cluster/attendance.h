#pragma once
// What follows when somebody is measured, taken in or parked: weights, calibrations, and what people are told. One
// thread at a time.

#include "cluster/rooms.h"
#include "fleet/parking.h"

namespace motley::cluster {

class Attendance final : public fleet::Attendance {
 public:
  /// REQUIRES rooms outlive this.
  explicit Attendance(Rooms& rooms) : rooms_(rooms) {}

  void calibrate(fleet::Member& member, std::uint64_t samples) override;
  void take_in(fleet::Member& member, const fleet::Cause& cause) override;
  void park(fleet::Member& member, const fleet::Cause& cause, bool told) override;
  bool try_link(fleet::Member& member) override;
  void take_in(fleet::Member& member, modes::Reason reason);

 private:
  Rooms& rooms_;
};

}  // namespace motley::cluster
