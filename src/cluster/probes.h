#pragma once
// Whether the devices compute alike, before one counts that nobody knows: each worker computes a probe
// (compute/probe.h), beside whatever it does, and the driver compares it with that of the head's own device, or of the
// first worker where the head has none. Until then nothing is shared with it. Who computes otherwise than the head is
// excluded. A worker is compared once, whatever its sessions. One thread at a time.

#include <cstdint>
#include <optional>
#include <vector>

#include "cluster/rooms.h"
#include "modes/event.h"

namespace motley::cluster {

class Probes {
 public:
  /// REQUIRES it outlives this.
  explicit Probes(Rooms& rooms) : rooms_(rooms) {}

  /// A worker has its weights.
  void synced(const fleet::Member& member, Time now);
  void on(const modes::Probed& event);
  /// The session of a worker that computes otherwise than the head.
  [[nodiscard]] std::optional<fleet::SessionId> on(const modes::ProbesCompared& event);
  void session_lost(fleet::SessionId session);
  /// The run is not paused any more: devices of the head may compute.
  void resumed();
  void watch(Time now);

 private:
  struct Asked {
    fleet::SessionId session = 0;
    fleet::WorkerId worker = 0;
    modes::LeaseId lease = 0;  // 0: not yet, since the run is paused
  };
  struct Pair {
    fleet::WorkerId worker = 0, reference = 0;
    Time due{};  // when nobody waits for it any longer
    bool comparing = false;
    std::uint32_t tries = 0;
  };
  /// Of a worker: what came out of its probe.
  struct Said {
    fleet::WorkerId worker = 0;
    bool whole = false;  // else it says nothing of the device
  };

  void pair(const fleet::Member& member, const fleet::Member& reference, Time now);
  void ask(const fleet::Member& member);
  void send(Asked& asked);
  [[nodiscard]] const Said* said(fleet::WorkerId worker) const noexcept;
  void compare();
  [[nodiscard]] fleet::Member* member_of(fleet::WorkerId worker) noexcept;
  void trust(fleet::WorkerId worker);

  Rooms& rooms_;
  std::vector<Asked> asked_;
  std::vector<Said> said_;
  std::vector<Pair> pairs_;                // to be compared
  std::vector<fleet::WorkerId> compared_;  // once and for all
};

}  // namespace motley::cluster
