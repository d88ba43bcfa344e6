#pragma once
// The rounds of a run, done again as plain loops from what was granted and what counted: the weights of each version
// must be those of the run. Of runs whose workers remember nothing from round to round. One thread.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/head/coordinator.h"
#include "sim/computer.h"
#include "sim/scenario.h"
#include "wire/messages.h"

namespace motley::sim {

class RoundReplay {
 public:
  /// REQUIRES both outlive this.
  RoundReplay(const RunSetup& run, const Data& data);
  void head_started(std::uint64_t version);
  void granted(std::uint64_t session, const wire::Grant& grant);
  void begun(const wire::Begin& begin);
  /// What is wrong with it; empty: nothing. `weights`: after it.
  [[nodiscard]] std::string closed(const engine::StepClosed& step, const std::vector<SharedBytes>& weights);

 private:
  struct Granted {
    std::uint64_t session = 0;
    wire::Grant grant;
    std::uint64_t ahead = 0;  // steps that were made before the weights of the round were used
  };
  struct Contribution {
    Granted granted;
    std::vector<SharedBytes> made{};    // the worker's weights after it, by chunk
    std::vector<SharedBytes> change{};  // times the weight
    double weight = 0;
  };
  /// Positions of the run's order: (epoch, position).
  using Used = std::map<std::pair<std::uint64_t, std::uint64_t>, bool>;
  [[nodiscard]] Used positions_of(const engine::StepClosed& step) const;
  [[nodiscard]] std::string find(const engine::StepClosed& step, std::vector<Contribution>& found) const;
  void compute(Contribution& contribution);
  /// The weight of its samples.
  double make_step(ps::Server& server, std::span<const std::uint64_t> samples);

  const RunSetup& run_;
  std::unique_ptr<softmax::SoftmaxRegression> model_;
  compute::TaskLoop loop_;
  BatchPlan rounds_;
  std::optional<ps::Server> outer_;
  std::map<std::uint64_t, ps::Snapshot> versions_;
  std::vector<Granted> grants_;                             // of rounds that are not closed, in their order
  std::map<std::uint64_t, std::vector<SharedBytes>> made_;  // by session, in the round that was closed last
};

}  // namespace motley::sim
