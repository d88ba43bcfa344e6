#pragma once
// The arithmetic of the parameter server: contributions in, new weights out, chunk by chunk. No thread, clock or file.
// Weight and state chunks are immutable once published: updating writes a new pooled buffer, so a snapshot, a joiner
// and a frame in flight share them without copies or locks.
//
// A step:  reduce(c, …) for every chunk, in any order; then, where it clips(), clip(); then, with an optimizer from
// outside, step_outside(); then apply(c) for every chunk (with neither, apply(c) may follow reduce(c) at once); then
// finish_step().

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
  /// The open step is clipped by its own norm, in clip().
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
  /// Global norm over all trained elements, summed in chunk order; scales the gradient as torch's clip_grad_norm_ does.
  /// Returns the norm before clipping. REQUIRES every chunk reduced.
  double clip();
  /// Of the open step before clipping; 0 where the norm is not limited. REQUIRES every chunk reduced.
  [[nodiscard]] double gradient_norm() const;
  /// REQUIRES outside(), every chunk reduced, and clipped where clips(). After an error the server is of no use.
  Status step_outside();
  /// Runs the optimizer on a reduced chunk (moving average for statistics). The new weights, fp32.
  SharedBytes apply(ChunkId chunk);
  /// The final gradient of a chunk. Whoever asks pays with memory for it: otherwise apply() puts the new weights in its
  /// place. REQUIRES the chunk reduced, not applied, and clipped where clips().
  [[nodiscard]] SharedBytes gradient(ChunkId chunk);
  /// REQUIRES every chunk applied. version() rises by one.
  void finish_step();
  /// From its step on; replaces what was said of that step and later ones. REQUIRES no chunk of the open step reduced.
  void follow(FollowedRates rates);
  /// The same for every group.
  void follow(std::uint64_t first_step, double lr);

  [[nodiscard]] SharedBytes weights(ChunkId chunk) const;  // at version()
  [[nodiscard]] Snapshot snapshot() const;                 // REQUIRES no step half applied, the state here
  /// The same, but nothing of an optimizer from outside, which copies its state, nor of one that is on a device:
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
  /// Goes on in the memory of a device. From then on step_at() makes the steps, and weights() and snapshot() stay what
  /// they were. REQUIRES no step begun, not outside(). Errors: memory.
  Status settle(DeviceOptimizer& device) const;
  /// A step with the gradient sums that lie there. Errors: diverged (nothing was updated),
  /// internal. REQUIRES settle().
  Result<StepNumbers> step_at(DeviceOptimizer& device, double weight, std::uint64_t samples);
  /// What lies there, as of version().
  [[nodiscard]] Result<Snapshot> download(DeviceOptimizer& device) const;
  /// Brings the same from any thread, while steps go on there. REQUIRES it has been called before this is asked again.
  /// Empty: the device has no room for that.
  [[nodiscard]] std::function<Result<Snapshot>()> download_in_background(DeviceOptimizer& device) const;

  /// Sums and the optimizer go to a device, with weights and state, until offload(). From then on a step is
  /// reduce_on_device(), update_on_device(), then apply() for every chunk, then finish_step(). REQUIRES no step begun,
  /// not outside(), not on_device(). Errors: memory.
  Status move_to(std::shared_ptr<DeviceServer> device);
  [[nodiscard]] const std::shared_ptr<DeviceServer>& on_device() const noexcept;
  /// `parts`: by chunk, in order of positions. After an error nothing was changed, and offload() is of use.
  Status reduce_on_device(std::span<const std::vector<GradientPart>> parts, double weight, std::uint64_t samples);
  /// Clips and updates; the new weights come to the host. After an error the server is of no use.
  Status update_on_device();
  /// snapshot() and handles() are whole again. REQUIRES no step begun. After an error the server is of no use.
  Status download_state();
  /// The state comes to the host, where steps are made from now on. REQUIRES the same.
  Status offload();

  /// From now on these threads do a part of the work on large chunks; the bits stay the same. Forks share them.
  void share_work(std::shared_ptr<Parallel> helpers);

  // Move-only; the implementation is private.
  Server(Server&&) noexcept;
  Server& operator=(Server&&) noexcept;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace motley::ps
