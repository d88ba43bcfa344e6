#pragma once
// Who gets new weights from another worker, and from whom: chains without branches, made between two steps of those who
// are in step, those with the fastest links first. One thread at a time.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"
#include "engine/coordinator.h"
#include "engine/coordinator_pace.h"
#include "engine/coordinator_sessions.h"
#include "engine/coordinator_weights_sender.h"
#include "fleet/roster.h"
#include "plan/way_trial.h"
#include "wire/messages.h"

namespace motley::engine {

class Chain {
 public:
  /// Who is lost to a follower is not tried again before; each time twice as many.
  static constexpr std::uint64_t kBarredSteps = 50;
  /// Who has not found its source by then is parted from it: dialling takes five seconds at most.
  static constexpr Duration kFoundWithin = std::chrono::seconds(10);

  /// A link that carries so many times as much as another is not behind it in a chain.
  static constexpr double kClearlyFaster = 2;

  /// REQUIRES all outlive this.
  Chain(const CoordinatorOptions& options, MeasuredPace& pace, WeightsSender& weights, Sessions& sessions,
        const fleet::Roster& members, CoordinatorOutput& output);

  /// A step is closed.
  void review(const StepClosed& step);
  /// That numbers are to go in the steps to come.
  [[nodiscard]] plan::Way way() const noexcept;
  /// In how many bits, is another question since then.
  void codecs_changed() noexcept { trial_.again(); }
  /// Something else went on beside the step that is closed next, or the one after it.
  void disturbed() noexcept { disturbed_ = true; }
  /// Where it is tried.
  [[nodiscard]] std::optional<ChainChoice> told() const;
  /// That session is about to be closed.
  void leaves(SessionId id);
  // What workers say.
  void on_source(const Session& from, const wire::Source& source);
  void on_follows(Session& session, const wire::Follows& follows);
  /// What people are to be told; empty: nothing.
  std::string on_unfollows(Session& session, const wire::Unfollows& end);

 private:
  /// That of a step by `parts`.
  [[nodiscard]] plan::Way went(const StepClosed& step, std::span<Session* const> parts) const;
  void compare_ways(const StepClosed& step, std::span<Session* const> parts);
  [[nodiscard]] bool takes_part(const fleet::Member& member) const;
  [[nodiscard]] Session* follower_of(SessionId source);
  [[nodiscard]] bool barred(const Session& follower, const Session& source) const;
  [[nodiscard]] double carries(const Session& session) const;
  [[nodiscard]] bool clearly_faster(const Session& one, const Session& other) const;
  void make_room(std::span<Session* const> parts);
  void link(Session& follower, const Session& source);
  void bar(Session& follower, const Session& source, bool for_good) const;
  void part(Session& follower);

  CoordinatorOptions::Chain wanted_;
  plan::WayTrial trial_;  // where that is `measured`
  bool disturbed_ = false;
  std::vector<SessionId> parts_;  // of the newest step, sorted
  MeasuredPace& pace_;
  WeightsSender& weights_;
  Sessions& sessions_;
  const fleet::Roster& members_;
  CoordinatorOutput& output_;
  std::uint64_t numbers_ = 0;
};

}  // namespace motley::engine
