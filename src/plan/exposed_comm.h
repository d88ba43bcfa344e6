#pragma once
// What a worker waits in a pass beyond computing: for weights and gradients on the wire. Pure.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "plan/innovations.h"

namespace motley::plan {

/// Seconds of a pass, learned from passes and, before the first one and while the worker has no share, from versions of
/// the weights on their way to it. A Kalman filter of one number: links vary, by a part of their noise from pass to
/// pass. First passes are cold, so they are believed in part; `Innovations` says what of a later one counts.
class ExposedComm {
 public:
  /// From the grant until the last byte of its contribution; for `computed` of that its device was busy.
  void pass(double elapsed, double computed) noexcept;
  /// A version took so long to get there before any pass, and a pass moves `part` of its bytes. If that is long it is
  /// the least that is believed at first. REQUIRES !seconds().
  void first_version(double seconds, double part) noexcept;
  /// A version, or as many bytes as a pass moves, took so long while the worker had no share. True if its link is much
  /// faster than when it lost it. REQUIRES seconds().
  bool version(double seconds) noexcept;
  /// It is still without a share.
  void fade() noexcept;
  /// Its device has become another one, and does the work of the wire as well.
  void forget() noexcept;
  /// The bytes of a pass became so many times as many: the next pass says more than all before.
  void scale(double factor) noexcept;
  /// So many remote workers have a share from now on, itself included, where one contribution keeps the link that they
  /// share busy for `link_seconds`.
  void expect_senders(std::size_t senders, double link_seconds) noexcept;

  /// As measured; empty before the first pass.
  [[nodiscard]] std::optional<double> seconds() const noexcept { return seconds_; }
  /// Likewise, or what is known of its link before.
  [[nodiscard]] double expected() const noexcept { return seconds_.value_or(version_seconds_); }
  /// What of it is believed.
  [[nodiscard]] double believed() const noexcept;
  /// What each further sender costs it, of a link that is busy with one contribution for `link_seconds`: computing may
  /// hide a part of that.
  [[nodiscard]] double for_each_sender(double link_seconds) const noexcept;
  /// What the senders beside it cost it in the passes so far.
  [[nodiscard]] double for_senders(double link_seconds) const noexcept;

 private:
  static constexpr Innovations::Noise kNoise{.first = 0.2, .least = 0.01, .most = 0.5};

  struct Link {
    double version_seconds, exposed;
  };
  void measured(double exposed, double scale) noexcept;

  std::optional<double> seconds_;
  double variance_ = 0;              // relative
  Innovations innovations_{kNoise};  // since passes count anew
  std::uint32_t passes_ = 0;         // in it
  bool settled_ = false;             // it is no longer what first passes cost
  double version_seconds_ = 0;       // of a first version, where that is long
  std::optional<Link> without_;      // as it was when it was first measured without a share
  std::size_t senders_ = 1;          // in these passes
};

}  // namespace motley::plan
