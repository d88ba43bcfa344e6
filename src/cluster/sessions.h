#pragma once
// Sessions of a run: joining, hearing nothing, leaving, strikes. One thread at a time.

#include <optional>

#include "cluster/probes.h"
#include "cluster/rooms.h"
#include "fleet/parking.h"
#include "modes/event.h"

namespace motley::cluster {

class Sessions {
 public:
  /// REQUIRES both outlive this.
  Sessions(Rooms& rooms, fleet::Parking& parking) : run_(rooms.run), rooms_(rooms), parking_(parking), probes_(rooms) {}

  /// `over`: with this reason; none where the run goes on.
  void on(const modes::SessionOpened& event, std::optional<modes::ReasonCode> over, Time now);
  /// For one session more, if need be in the place of one that is idle.
  [[nodiscard]] bool has_room(Time now) const;
  void on(const modes::WorkerReady& event);
  void on(const modes::WorkerSynced& event, Time now);
  void on(const modes::RefreshWanted& event);
  void on(const modes::WorkerYields& event);
  void on(const modes::SessionEnded& event);
  void on(const modes::Calibrated& event, Time now);
  void on(const modes::Probed& event) { probes_.on(event); }
  void on(const modes::ProbesCompared& event);
  /// The run is not paused any more: what waited for that is measured.
  void resumed(Time now);
  /// The machine may have slept since the last call: nobody is late for that.
  void notice_gap(Time now);
  void watch(Time now);
  void strike(fleet::WorkerId worker);
  void refute(fleet::WorkerId worker);
  void dismiss_if_idle(fleet::SessionId session);
  void dismiss_idle();
  void close(fleet::SessionId session, modes::Reason reason);
  void close_all(modes::Reason reason);

 private:
  void consider(fleet::Member& member, Time now);
  void struck(fleet::WorkerId worker, bool out);
  void make_room(Time now);

  modes::Run& run_;
  Rooms& rooms_;
  fleet::Parking& parking_;
  Probes probes_;
  std::optional<Time> last_tick_;
};

}  // namespace motley::cluster
