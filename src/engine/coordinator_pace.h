#pragma once
// What the coordinator measures of its workers, and the shares that follow. One thread at a time.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/time.h"
#include "cluster/coordinator_machine.h"
#include "engine/coordinator.h"
#include "plan/codec_choice.h"
#include "plan/link_model.h"
#include "plan/planner.h"
#include "plan/shift.h"

namespace motley::engine {

/// What a contribution puts on the wire, by codec.
using ContributionBytes = std::array<double, 4>;

class MeasuredPace final : public cluster::Pace {
 public:
  explicit MeasuredPace(const CoordinatorOptions& options, const ContributionBytes& bytes = {})
      : contribution_bytes_(bytes),
        gradients_(options.gradients),
        grain_(options.grain),
        batch_(options.global_batch),
        fixed_(options.shares),
        timeouts_(options.timeouts),
        follows_((options.gradients ? 0 : 0.5) + (options.weights ? 0 : 0.5)) {}

  void split(PassKind kind, std::uint64_t total, std::span<const cluster::WorkerId> workers, bool reissue,
             std::span<std::uint64_t> counts) override;
  [[nodiscard]] Duration allowance(PassKind kind, cluster::WorkerId worker, std::uint64_t samples) const override;
  [[nodiscard]] std::uint64_t calibration(cluster::WorkerId worker) const override;
  [[nodiscard]] std::uint64_t unit(cluster::WorkerId worker) const override;
  [[nodiscard]] std::uint64_t shift(const Part& late, const Part& early) const override;
  [[nodiscard]] std::uint64_t relief(const Part& late, cluster::WorkerId helper, Duration pass_age) const override;
  [[nodiscard]] std::uint64_t trial(cluster::WorkerId worker) const override;
  [[nodiscard]] Verdict judge(std::uint64_t total, std::span<const cluster::WorkerId> members,
                              cluster::WorkerId worker) override;
  [[nodiscard]] Verdict compare(std::uint64_t total, cluster::WorkerId worker) override;
  [[nodiscard]] Verdict resolve(std::uint64_t total, cluster::WorkerId worker) const override;

  /// The first lease of a pass, from its grant to the last byte of its contribution.
  void elapsed(PassKind kind, cluster::WorkerId worker, cluster::LeaseId lease, std::uint64_t samples, Duration time);
  /// What the worker's device was busy with it. Comes before or after elapsed().
  void computed(PassKind kind, cluster::WorkerId worker, cluster::LeaseId lease, std::uint64_t samples, double seconds);
  /// Samples of a forward pass on its device.
  void uses_micro_batch(cluster::WorkerId worker, std::uint64_t samples);
  /// What a version of the weights took to get to it, or would have taken in as few bytes as a pass moves: the least
  /// its link costs in a pass, until one was run. Of a parked worker it tells when the link has become faster.
  void reached(cluster::WorkerId worker, Duration time);
  /// `remote`: its numbers travel on the coordinator's link.
  void connected(cluster::WorkerId worker, bool remote);
  /// Weights that went to it beside the run.
  void received(cluster::WorkerId worker, const plan::Transfer& weights);
  /// Its contribution to `lease`, which was the first of its pass, had to wait for the wire.
  void sent(cluster::WorkerId worker, cluster::LeaseId lease, const plan::Transfer& gradient);
  /// In how many bits numbers go between it and the coordinator, in the directions where that is open.
  [[nodiscard]] codec::CodecId codec(cluster::WorkerId worker) const;
  /// A pass in which it had a share is closed: the codec of a remote one may change, which it does not while leases are
  /// open.
  void weigh_codec(cluster::WorkerId worker);
  /// By the codec of its newest contribution, in lengths of that.
  void left_out(cluster::WorkerId worker, double lengths);
  /// After so long a lease of a train pass is still not done. `computes`: of that time its device had at most these
  /// samples; else it had computed them, or waited for weights.
  void late(cluster::WorkerId worker, cluster::LeaseId lease, std::uint64_t samples, Duration time, bool computes);
  /// What an earlier run learned of its device; a calibration checks it.
  void known_before(cluster::WorkerId worker, const plan::Affine& speed);
  /// Computing beside the run, as a train pass without its gradient on the wire.
  void calibrated(cluster::WorkerId worker, std::uint64_t samples, double seconds);
  /// A step that `worker` made by itself.
  void alone(cluster::WorkerId worker, std::uint64_t samples, double compute_seconds, double step_seconds);
  /// A train pass, from its opening until every chunk is updated.
  void closed(Duration time);
  /// Others have a share in the newest train pass than when told() was called, or what is known of their links has
  /// settled since.
  [[nodiscard]] bool news() const noexcept {
    return sharing_ != told_ || (settled() && !told_settled_) || (passes_ >= kSettled && told_passes_ < kSettled);
  }
  void told();
  /// Of an evaluation by `members`; empty until one was seen.
  [[nodiscard]] std::optional<double> evaluation_seconds(std::uint64_t total,
                                                         std::span<const cluster::WorkerId> members);
  /// Steps of `total` samples by `members`, while `parked` wait; empty until all of them are measured. Names and advice
  /// are left empty; Outlook's order is that of members, then parked.
  [[nodiscard]] std::optional<Planned> forecast(std::uint64_t total, std::span<const cluster::WorkerId> members,
                                                std::span<const cluster::WorkerId> parked);
  /// Samples a step could have held in the time that does not depend on its size; of the workers that have a share now.
  /// Empty until all of them are measured.
  [[nodiscard]] std::optional<double> lost_samples() const;

 private:
  struct Half {  // of a measurement, waiting for the other one
    cluster::LeaseId lease = 0;
    double seconds = 0;
  };
  struct Known {
    plan::TimeModel compute;
    plan::CodecChoice codec;
    double left_out = 0;            // by it, of the newest contribution
    double whole_per_sample = 0;    // of the first pass, until computing and waiting can be told apart
    std::optional<double> exposed;  // seconds of a pass beyond computing: weights and gradients on the wire
    std::size_t senders = 1;        // remote workers with a share, itself included, in the passes of `exposed`
    double link_seconds = 0;        // of a whole version to it, where that is long; the least that is believed at first
    std::uint32_t exposures = 0;    // passes in it
    std::optional<double> longer;   // of the newest pass, if that was much longer than `exposed`
    bool exposed_settled = false;   // it is no longer what first passes cost
    struct Link {
      double version_seconds, exposed;
    };
    std::optional<Link> parked_link;  // as it was when it was first measured beside the run
    double spread = 0;                // mean distance of a pass from its expected time, as a part of it
    plan::TimeModel alone;            // of its steps by itself, from beginning to end
    bool made_steps = false;          // by itself
    Half elapsed, computed, elapsed_before;
    bool remote = false;
    plan::LinkModel up, down;
    cluster::LeaseId sent = 0;  // the newest in `up`
    std::uint32_t calibrations = 0;
    std::uint64_t micro_batch = 0;  // 0: unknown
    bool known_before = false;      // `compute` starts from an earlier run
    bool faster = false;            // than in its newest pass: its device or its link
    double trial_seconds = 0;       // of the newest calibration
    std::uint64_t trial_samples = 0;
    [[nodiscard]] double waits() const noexcept;  // of `exposed`, what is believed
    [[nodiscard]] std::optional<plan::Affine> time() const noexcept;
  };
  // Evaluation has no backward pass and no gradient on the wire, so it has models of its own.
  struct Kind {
    std::vector<Known> known;  // by worker - 1
    std::uint64_t total = 0;   // of the last split
    std::vector<cluster::WorkerId> workers;
    std::vector<std::uint64_t> counts;
    std::uint32_t gains_let_go = 0;  // splits in a row that were kept though a change would have gained a little
  };
  Kind& of(PassKind kind) noexcept { return kind == PassKind::evaluate ? evaluate_ : train_; }
  [[nodiscard]] const Kind& of(PassKind kind) const noexcept { return kind == PassKind::evaluate ? evaluate_ : train_; }
  Known& known(PassKind kind, cluster::WorkerId worker);
  [[nodiscard]] std::optional<plan::Affine> time(const Kind& kind, cluster::WorkerId worker) const;
  [[nodiscard]] plan::Candidate candidate(const Kind& kind, cluster::WorkerId worker) const;
  /// What each further sender costs it: a part of that may be hidden by computing.
  [[nodiscard]] double wait_for_another(const Kind& kind, cluster::WorkerId worker) const;
  static void pair_up(Known& known);
  void begin_comparison() noexcept;
  /// Empty while the worker's speed is not known.
  [[nodiscard]] std::optional<plan::Part> part_of(const Part& part) const;
  [[nodiscard]] std::uint64_t grains(std::uint64_t samples) const noexcept;
  /// A step of `total` samples by `worker` alone; empty unless it made some.
  [[nodiscard]] std::optional<double> step_alone(cluster::WorkerId worker, std::uint64_t total) const;
  /// The same, if it is the only member.
  [[nodiscard]] std::optional<double> step_alone(std::span<const cluster::WorkerId> members, std::uint64_t total) const;
  [[nodiscard]] double with_slack(double seconds) const noexcept;
  /// `link_seconds`: that the coordinator's link is busy in the shortest step with a share for it.
  [[nodiscard]] plan::Outlook outlook(cluster::WorkerId worker, std::uint64_t total, std::uint64_t samples,
                                      double link_seconds) const;
  [[nodiscard]] bool remote(cluster::WorkerId worker) const;
  /// Remote workers with a share.
  [[nodiscard]] std::size_t senders(std::span<const cluster::WorkerId> workers,
                                    std::span<const std::uint64_t> counts) const;
  /// That one contribution keeps the coordinator's link busy, at the least; 0 where that is not known.
  [[nodiscard]] double link_seconds(const Kind& kind, std::span<const cluster::WorkerId> workers) const;
  [[nodiscard]] plan::Request request(const Kind& kind, std::uint64_t total,
                                      std::span<const cluster::WorkerId> workers) const;
  void weigh_shared_link();
  /// So many remote workers have a share from now on.
  void expect_senders(std::size_t senders);

  ContributionBytes contribution_bytes_;
  std::optional<codec::CodecId> gradients_;
  std::uint64_t grain_, batch_;
  std::vector<double> fixed_;
  Timeouts timeouts_;
  double follows_;  // the part of a worker's bytes whose codec is open
  Kind train_, evaluate_;
  /// Fills candidates_. A worker whose time varies is to be done a little earlier: the pass waits for the last one.
  void gather(const Kind& kind, std::span<const cluster::WorkerId> workers);
  [[nodiscard]] double expected_seconds(const Kind& kind, std::span<const cluster::WorkerId> workers,
                                        std::span<const std::uint64_t> counts) const;

  static constexpr double kNewest = 0.2;  // of a mean
  // The first passes pay for cold caches and connections: what they wait counts in full only when there were so many of
  // them. Before that a part, and what is beyond the most that cold ones cost; never less than the link is known to
  // take.
  static constexpr std::uint32_t kExposuresBelieved = 4;
  static constexpr std::uint32_t kSettled = 8;
  /// In the first passes with somebody new, connections are cold and shares unsettled: so many, or fewer where each is
  /// long.
  [[nodiscard]] bool settled() const noexcept {
    constexpr std::uint32_t kSettledLeast = 2;
    constexpr double kSettledSeconds = 5;
    return passes_ >= kSettled || (passes_ >= kSettledLeast && settling_seconds_ >= kSettledSeconds);
  }

  std::vector<plan::Candidate> candidates_;
  double expected_ = 0;          // seconds of the open train pass; 0: unknown
  std::optional<double> slack_;  // seconds a train pass takes beyond what is expected of its slowest worker
  std::vector<cluster::WorkerId> sharing_, told_;
  struct Alone {
    std::uint32_t steps = 0;
    double seconds = 0;
    bool told = false;
  } alone_;                      // steps that one worker made since the last pass
  std::uint32_t passes_ = 0;     // with the same workers, since the last step that one of them made alone
  double settling_seconds_ = 0;  // of those until settled()
  std::uint32_t compared_ = 0;   // the others
  double pass_seconds_ = 0;      // mean of the newest of these; 0 before the first pass
  bool told_settled_ = false;
  std::uint32_t told_passes_ = 0;
  std::vector<plan::Sender> sendings_;  // of contributions to the pass before, in seconds since the leases were granted
  std::size_t senders_ = 0;             // remote workers with a share in the pass before
  plan::SharedLink shared_link_;
  struct Doubted {  // pass_seconds_ and the batch, when compare() could not tell
    double seconds = 0;
    std::uint64_t total = 0;
  } doubted_;
};

}  // namespace motley::engine
