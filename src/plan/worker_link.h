#pragma once
// A worker's link to the coordinator: what it was seen to carry, and in how many bits numbers go over it. Pure.

#include <cstdint>
#include <optional>

#include "plan/codec_choice.h"
#include "plan/codec_cost.h"
#include "plan/link_model.h"

namespace motley::plan {

class WorkerLink {
 public:
  /// `follows`: the part of its bytes whose codec is open.
  explicit WorkerLink(double follows = 0) noexcept : open_(follows > 0), choice_(follows) {}

  /// `remote`: its numbers travel on the coordinator's link. Others stay exact.
  void connected(bool remote) noexcept { remote_ = remote; }
  [[nodiscard]] bool remote() const noexcept { return remote_; }

  /// Weights that went to it beside the run.
  void received(const Transfer& weights) noexcept { down_.record(weights); }
  /// Its contribution to `lease`, which was there `end` seconds after the grant, had to wait for the wire. What that
  /// says of the link that all share; empty where it says nothing.
  std::optional<Sender> sent(std::uint64_t lease, const Transfer& gradient, double end) noexcept;

  /// A whole version took so long to reach it, before any pass. Returns the part of that which it takes from now on.
  double first_version(double seconds) noexcept { return remote_ && open_ ? choice_.version(seconds) : 1; }
  /// What the codec left of its newest contribution: the norm of that over the contribution's. Used when the pass is
  /// closed.
  void residual(double ratio) noexcept { residual_ = ratio; }
  /// What its own processor has to do with numbers on the wire.
  void costs(const EndCost& cost) noexcept { cost_ = cost; }
  [[nodiscard]] const EndCost& costs() const noexcept { return cost_; }
  /// A pass with a share for it is closed: its codec may change, which it does not while leases are open. Returns what
  /// the time on the wire will be multiplied by. `processors`: see held_up().
  double closed(double compute_seconds, double exposed_seconds, const ByCodec& processors = {}) noexcept;

  [[nodiscard]] codec::CodecId codec() const noexcept { return choice_.codec(); }
  [[nodiscard]] std::optional<double> up_bytes_per_second() const noexcept { return up_.bytes_per_second(); }
  [[nodiscard]] std::optional<double> down_bytes_per_second() const noexcept { return down_.bytes_per_second(); }

 private:
  bool open_;
  bool remote_ = false;
  CodecChoice choice_;
  EndCost cost_;
  double residual_ = 0;
  LinkModel up_, down_;
  std::uint64_t lease_ = 0;  // the newest in `up_`
};

}  // namespace motley::plan
