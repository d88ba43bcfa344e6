#pragma once
// How long a worker takes for passes of one kind: its device, what it waits for beyond that, and how much both vary.
// Pure.

#include <cstdint>
#include <optional>
#include <utility>

#include "plan/device_speed.h"
#include "plan/exposed_comm.h"
#include "plan/planner.h"

namespace motley::plan {

/// What a pass took arrives in halves: the time until the last byte of its contribution is seen by the coordinator, the
/// time for which its device was busy is told by the worker, before or after. Leases put them together; of each pass it
/// is the worker's first one.
class WorkerSpeed {
 public:
  void elapsed(std::uint64_t lease, std::uint64_t samples, double seconds) noexcept;
  void computed(std::uint64_t lease, std::uint64_t samples, double seconds) noexcept;
  /// After so long its lease is still not done. `computes`: of that time its device had at most these samples; else it
  /// had computed them, or waited for weights.
  void late(std::uint64_t lease, std::uint64_t samples, double seconds, bool computes) noexcept;
  /// Computed beside the run. True if it is as fast as ever.
  bool calibrated(std::uint64_t samples, double seconds) noexcept;
  /// A version of the weights took so long to get to it while it had no share. REQUIRES a pass before.
  void version(double seconds) noexcept { faster_ = wire_.version(seconds) || faster_; }
  /// A step that it made by itself.
  void alone(std::uint64_t samples, double compute_seconds, double step_seconds) noexcept;

  /// Of a pass, with what is believed of the wire; empty: not measured yet.
  [[nodiscard]] std::optional<Affine> time() const noexcept;
  /// `link_seconds`: that one contribution of it keeps the coordinator's link busy.
  [[nodiscard]] Candidate candidate(bool remote, double link_seconds) const noexcept;
  /// A step of so many samples that it makes by itself; empty unless it made some.
  [[nodiscard]] std::optional<double> step_alone(std::uint64_t samples) const noexcept;
  /// Its device or its link is faster than in its newest pass.
  [[nodiscard]] bool faster() const noexcept { return faster_; }
  /// Of the newest pass of which both halves are known: once.
  struct Pass {
    double compute_seconds = 0, exposed_seconds = 0;
  };
  std::optional<Pass> take_pass() noexcept { return std::exchange(pass_, std::nullopt); }
  /// Until its contribution was there, if that is one of the newest two.
  [[nodiscard]] std::optional<double> elapsed(std::uint64_t lease) const noexcept;

  [[nodiscard]] DeviceSpeed& device() noexcept { return device_; }
  [[nodiscard]] const DeviceSpeed& device() const noexcept { return device_; }
  [[nodiscard]] ExposedComm& wire() noexcept { return wire_; }
  [[nodiscard]] const ExposedComm& wire() const noexcept { return wire_; }

 private:
  struct Half {
    std::uint64_t lease = 0;
    double seconds = 0;
  };
  void pair_up() noexcept;

  DeviceSpeed device_;
  ExposedComm wire_;
  Half elapsed_, computed_, elapsed_before_;
  std::optional<Pass> pass_;
  double whole_per_sample_ = 0;  // of the first pass, until computing and waiting can be told apart
  double spread_ = 0;            // mean distance of a pass from its expected time, as a part of it
  TimeModel alone_;
  bool made_steps_ = false;  // by itself
  bool faster_ = false;
};

}  // namespace motley::plan
