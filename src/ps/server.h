#pragma once
// The arithmetic of the parameter server: contributions in, new weights out, chunk by chunk. No thread, clock or file.
// It is done here, in the memory of the host, or in that of a device, which gets the numbers of each step from here.
// Weight and state chunks are immutable once published: updating writes a new pooled buffer, so a snapshot, a joiner
// and a frame in flight share them without copies or locks.
//
// A step here:  reduce(c, …) for every chunk, in any order; then close_gradient(); then apply(c) for every chunk; then
// finish_step(). Unless the step clips() or the optimizer is from outside, apply(c) may follow reduce(c) at once, and
// close_gradient() may be left out.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codec/codec.h"
#include "motley/bytes.h"
#include "motley/device_optimizer.h"
#include "motley/device_server.h"
#include "motley/layout.h"
#include "motley/result.h"
#include "ps/spec.h"

namespace motley::ps {

using motley::DeviceOptimizer;
using motley::Snapshot;

class Parallel;

class Server {
 public:
  /// `snapshot.optimizer` may be empty (a new run: state starts at zero). `clip_norm` <= 0: no clipping. Its version
  /// and `optimizer.updates_before` together are the number of steps that this state has seen.
  static Result<Server> make(Layout layout, OptimizerSpec optimizer, ScheduleSpec schedule, double clip_norm,
                             const Snapshot& snapshot);

  [[nodiscard]] const Layout& layout() const noexcept;
  [[nodiscard]] std::uint64_t version() const noexcept;
  /// The norm of gradients is limited.
  [[nodiscard]] bool limits_norm() const noexcept;
  /// The open step is clipped by its own norm, in close_gradient().
  [[nodiscard]] bool clips() const noexcept;
  /// From now on the norm of the step before clips: no chunk waits for the others. `norm`: of the step before the open
  /// one; where it is unknown, the open step is clipped by its own. REQUIRES limits_norm(), no chunk reduced.
  void clip_by_step_before(std::optional<double> norm);
  [[nodiscard]] bool clips_by_step_before() const noexcept;
  /// The optimizer is from outside.
  [[nodiscard]] bool outside() const noexcept;
  [[nodiscard]] double learning_rate(std::size_t group) const;  // of the open step
  /// Of a step before it, as long as nothing else was said since.
  [[nodiscard]] double learning_rate(std::size_t group, std::uint64_t step) const;

  /// Sums `parts` (each the chunk's elements, in order of positions) and divides by `weight`; statistics chunks are
  /// divided by `samples` instead. `part_squares`, where not empty, gets the squared norm of each part added, and that
  /// of the divided sum is returned; else 0. Several threads may do this, each with other chunks. REQUIRES one call per
  /// chunk and step.
  double reduce(ChunkId chunk, std::span<const codec::Encoded> parts, double weight, std::uint64_t samples,
                std::span<double> part_squares = {});
  double reduce(ChunkId chunk, std::span<const std::span<const float>> parts, double weight, std::uint64_t samples,
                std::span<double> part_squares = {});
  /// Of the open step over all trained elements, summed in chunk order, before clipping; 0 where the norm is not
  /// limited. REQUIRES every chunk reduced.
  [[nodiscard]] double gradient_norm() const;
  /// What needs the whole gradient: a step that clips() scales it as torch's clip_grad_norm_ does, and an optimizer
  /// from outside makes its step. REQUIRES every chunk reduced. After an error the server is of no use.
  Status close_gradient();
  /// Runs the optimizer on a reduced chunk (moving average for statistics). The new weights, fp32.
  SharedBytes apply(ChunkId chunk);
  /// The final gradient of a chunk. Whoever asks pays with memory for it: otherwise apply() puts the new weights in its
  /// place. REQUIRES the chunk reduced, not applied, and close_gradient() where the step clips().
  [[nodiscard]] SharedBytes gradient(ChunkId chunk);
  /// REQUIRES every chunk applied. version() rises by one.
  void finish_step();
  /// From its step on; replaces what was said of that step and later ones. REQUIRES no chunk of the open step reduced.
  void follow(FollowedRates rates);
  /// The same for every group.
  void follow(std::uint64_t first_step, double lr);

  [[nodiscard]] SharedBytes weights(ChunkId chunk) const;  // at version()
  [[nodiscard]] Snapshot snapshot() const;                 // REQUIRES no step half applied, the state here
  /// The same, but nothing of an optimizer from outside, which copies its state, nor of a state that only a device has:
  /// handles only.
  [[nodiscard]] Snapshot handles() const;
  /// Another server of the same state and settings, which goes on by itself. REQUIRES no step half applied, not
  /// outside().
  [[nodiscard]] Server fork() const;
  /// Moves on to the state of a fork. REQUIRES no step begun.
  void adopt(const Snapshot& of_fork);
  /// Goes on from these weights, by chunk, at `version`, with the optimizer's state that it has. `anew`: that is zero;
  /// an optimizer from outside has its own. Rates go by the version, the correction of a bias by the steps that the
  /// state has seen; those at a device that were not adopted are none. REQUIRES no step begun.
  Status rebase(std::uint64_t version, std::vector<SharedBytes> weights, bool anew);
  /// Weights and state go to a device, too. From then on step_at() makes the steps, and weights() and snapshot() stay
  /// what they were. REQUIRES no step begun, not outside(). Errors: memory.
  Status settle(DeviceOptimizer& device) const;
  /// The open step, with the gradient that the device has, of this norm: the device clips and updates, and version()
  /// rises by one. REQUIRES settle(), no step begun here. After an error only what was here before is of use.
  Status step_at(DeviceOptimizer& device, double norm);
  /// weights() are those that the device has, too. After an error the server is of no use.
  Status download_weights(DeviceServer& device);
  /// What lies there, as of version().
  [[nodiscard]] Result<Snapshot> download(DeviceOptimizer& device) const;
  /// Brings the same from any thread, while steps go on there. REQUIRES it has been called before this is asked again.
  /// Empty: the device has no room for that.
  [[nodiscard]] std::function<Result<Snapshot>()> download_in_background(DeviceOptimizer& device) const;

  /// From now on these threads do a part of the work on large chunks; the bits stay the same. Forks share them.
  void share_work(std::shared_ptr<Parallel> helpers);

  // Move-only; the implementation is private.
  Server(Server&&) noexcept;
  Server& operator=(Server&&) noexcept;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

 private:
  Status step_outside();

  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace motley::ps
