#pragma once
// What the coordinator measures of its workers, and the decisions that follow: the estimators of plan/, each fed and
// asked for the worker, the kind of pass and the batch at hand. One thread at a time.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/time.h"
#include "engine/head/coordinator.h"
#include "engine/head/worker_performance.h"
#include "modes/performance_model.h"
#include "modes/work/coverage.h"
#include "plan/codec_cost.h"
#include "plan/forecast.h"
#include "plan/link_model.h"
#include "plan/plan_news.h"
#include "plan/settling.h"
#include "plan/shares.h"
#include "plan/shift.h"
#include "plan/step_overhead.h"
#include "plan/verdicts.h"

namespace motley::engine {

/// What a contribution puts on the wire, by codec.
using ContributionBytes = plan::ByCodec;

class MeasuredPerformance final : public modes::PerformanceModel {
 public:
  explicit MeasuredPerformance(const CoordinatorOptions& options, const ContributionBytes& bytes = {})
      : contribution_bytes_(bytes),
        gradients_(options.gradients),
        open_{.gradients = !options.gradients, .weights = !options.weights},
        head_cost_(options.head_cost),
        sizes_{.batch = options.local_steps > 0 ? options.local_batch : options.global_batch, .grain = options.grain},
        local_steps_(std::max<std::uint64_t>(1, options.local_steps)),
        fixed_(options.shares),
        timeouts_(options.timeouts),
        workers_({.link = plan::WorkerLink((open_.gradients ? 0.5 : 0) + (open_.weights ? 0.5 : 0))}) {}

  void split(PassKind kind, std::uint64_t total, std::span<const fleet::WorkerId> workers, bool reissue,
             std::span<std::uint64_t> counts) override;
  [[nodiscard]] Duration allowance(PassKind kind, fleet::WorkerId worker, std::uint64_t samples) const override;
  [[nodiscard]] Duration deadline(PassKind kind, fleet::WorkerId worker, std::uint64_t samples) const override;
  [[nodiscard]] bool guesses(PassKind kind, fleet::WorkerId worker) const override {
    return !workers_.of(worker).speed(kind).time();
  }
  [[nodiscard]] Duration unheard_allowance(PassKind kind, fleet::WorkerId worker, std::uint64_t samples) const override;
  [[nodiscard]] std::uint64_t calibration(fleet::WorkerId worker) const override;
  [[nodiscard]] std::uint64_t unit(fleet::WorkerId worker) const override;
  [[nodiscard]] std::uint64_t shift(const Part& late, const Part& early) const override;
  [[nodiscard]] std::uint64_t relief(const Part& late, fleet::WorkerId helper, Duration pass_age) const override;
  [[nodiscard]] std::uint64_t trial(fleet::WorkerId worker) const override;
  [[nodiscard]] Verdict judge(std::uint64_t total, std::span<const fleet::WorkerId> members,
                              fleet::WorkerId worker) override;
  [[nodiscard]] Verdict compare(std::uint64_t total, fleet::WorkerId worker) override;
  [[nodiscard]] Verdict resolve(std::uint64_t total) override;

  // What is told of the first lease of a pass: plan::WorkerSpeed.
  void elapsed(PassKind kind, fleet::WorkerId worker, modes::LeaseId lease, std::uint64_t samples, Duration time);
  void computed(PassKind kind, fleet::WorkerId worker, modes::LeaseId lease, std::uint64_t samples, double seconds);
  void late(fleet::WorkerId worker, modes::LeaseId lease, std::uint64_t samples, Duration time, bool computes);
  /// A train pass is closed, from its opening until every chunk was updated.
  void closed(Duration time);
  /// Likewise, for one that had a share in it: its codec may change.
  void weigh_codec(fleet::WorkerId worker);
  /// A step that `worker` made by itself.
  void alone(fleet::WorkerId worker, std::uint64_t samples, double compute_seconds, double step_seconds);

  // What is told beside passes.
  void known_before(fleet::WorkerId worker, const plan::Affine& speed);
  void calibrated(fleet::WorkerId worker, std::uint64_t samples, double seconds);
  /// Samples of a forward pass on its device; 0: it does not say.
  void uses_micro_batch(fleet::WorkerId worker, std::uint64_t samples);

  /// Its device computes in passes of two sizes: shares of it are whole ones, where others take what is left.
  void has_pass_sizes(fleet::WorkerId worker) { workers_.at(worker).pass_sizes = true; }

  // What is told of its link: plan::WorkerLink, plan::ExposedComm.
  void connected(fleet::WorkerId worker, bool remote) {
    workers_.at(worker).link.connected(remote);
    ++workers_.at(worker).sessions;
  }
  void left(fleet::WorkerId worker) { --workers_.at(worker).sessions; }
  /// What a version of the weights took to get to it, or would have taken in as few bytes as a pass moves.
  void reached(fleet::WorkerId worker, Duration time);
  void received(fleet::WorkerId worker, const plan::Transfer& weights) { workers_.at(worker).link.received(weights); }
  void sent(fleet::WorkerId worker, modes::LeaseId lease, const plan::Transfer& gradient);
  /// What numbers on the wire cost its processor.
  void costs(fleet::WorkerId worker, const plan::EndCost& cost) { workers_.at(worker).link.costs(cost); }
  void residual(fleet::WorkerId worker, double ratio) { workers_.at(worker).link.residual(ratio); }

  /// In how many bits numbers go between it and the coordinator, in the directions where that is open.
  [[nodiscard]] codec::CodecId codec(fleet::WorkerId worker) const { return workers_.of(worker).link.codec(); }

  [[nodiscard]] bool news() const noexcept { return news_.news(settling_.stage()); }
  void told() { news_.told(settling_.stage()); }
  /// Of an evaluation by `members`; empty until one was seen.
  [[nodiscard]] std::optional<double> evaluation_seconds(std::uint64_t total,
                                                         std::span<const fleet::WorkerId> members) const;
  /// Steps of `total` samples by `members`, while `parked` wait; empty until all of them are measured. Names and advice
  /// are left empty; Outlook's order is that of members, then parked. `local_steps`: in a run of exact steps, a round
  /// of so many.
  [[nodiscard]] std::optional<Planned> forecast(std::uint64_t total, std::span<const fleet::WorkerId> members,
                                                std::span<const fleet::WorkerId> parked,
                                                std::uint64_t local_steps = 1) const;
  /// plan::lost_samples() of the workers that have a share now; empty until all of them are measured.
  [[nodiscard]] std::optional<double> lost_samples() const;

 private:
  /// As long as a lease of `worker` may take of which nothing was measured.
  [[nodiscard]] Duration guess(fleet::WorkerId worker) const;
  [[nodiscard]] Duration times_predicted(double factor, PassKind kind, fleet::WorkerId worker,
                                         std::uint64_t samples) const;
  [[nodiscard]] std::vector<plan::Candidate> candidates(PassKind kind, std::span<const fleet::WorkerId> workers) const;
  [[nodiscard]] plan::Candidate candidate(PassKind kind, fleet::WorkerId worker) const;
  [[nodiscard]] plan::Affine fixed_share(fleet::WorkerId worker) const;
  [[nodiscard]] plan::Request request(PassKind kind, std::uint64_t total,
                                      std::span<const fleet::WorkerId> workers) const;
  /// That one contribution to a train pass keeps the coordinator's link busy, at the least; 0 where that is not known.
  [[nodiscard]] double link_seconds(std::span<const fleet::WorkerId> workers) const;
  [[nodiscard]] std::optional<plan::Part> part_of(const Part& part) const;
  /// Empty unless all of them are measured.
  [[nodiscard]] std::optional<std::vector<plan::MeasuredWorker>> measured(
      std::uint64_t total, std::span<const fleet::WorkerId> workers) const;
  /// So that passes of two sizes need not be filled up.
  void round_to_passes(const plan::Request& wanted, std::span<const fleet::WorkerId> workers,
                       std::span<std::uint64_t> counts) const;
  void begin_others(std::span<const fleet::WorkerId> sharing);
  /// Workers of other machines that have a share.
  [[nodiscard]] std::size_t senders() const;

  ContributionBytes contribution_bytes_;
  std::optional<codec::CodecId> gradients_;
  plan::OpenCodecs open_;
  plan::EndCost head_cost_;
  double head_part_ = 0;  // of the newest train pass: what workers of the head's own machine compute
  plan::Sizes sizes_;
  std::uint64_t local_steps_;  // of a round
  std::vector<double> fixed_;
  Timeouts timeouts_;
  WorkerPerformances workers_;
  plan::Shares train_, evaluate_;
  plan::SharedLink shared_link_;
  plan::Settling settling_;
  plan::StepOverhead step_overhead_;
  plan::Comparison comparison_;
  std::vector<fleet::WorkerId> together_;  // whom it compares with one of them alone
  plan::PlanNews news_;
};

}  // namespace motley::engine
