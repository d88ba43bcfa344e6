#pragma once
// What evaluations come to: that of everybody, lease by lease, and that of one worker beside the training. One thread
// at a time.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cluster/coordinator_machine.h"
#include "engine/head/coordinator.h"

namespace motley::engine {

class Evaluations {
 public:
  /// Of one lease of the open evaluation.
  void scored(modes::LeaseId lease, std::vector<double> scores) { scores_[lease] = std::move(scores); }
  /// The open one, all of whose positions are counted. `exact`: of the exact weights.
  Evaluated close(const cluster::CoordinatorMachine& machine, bool exact);

  /// One of this version begins beside the training.
  void begin_background(std::uint64_t version, bool exact) noexcept {
    background_version_ = version;
    background_exact_ = exact;
  }
  /// Its result, of so many samples; empty where that is not all of it.
  [[nodiscard]] std::optional<Evaluated> background(const modes::BackgroundEvaluation& background,
                                                    const wire::Finish& finish, std::uint64_t samples) const;
  /// It is to be compared with that of everybody.
  void keep(Evaluated background) { background_ = std::move(background); }
  /// How it differs from that of everybody, by more than other devices explain: "a loss of 1.2 and 35
  /// right answers, where all others come to 0.4 and 91"; empty where it does not. REQUIRES both are there.
  [[nodiscard]] std::string difference() const;

 private:
  std::map<modes::LeaseId, std::vector<double>> scores_;
  std::uint64_t background_version_ = 0;
  bool background_exact_ = true;
  Evaluated background_, everybodys_;  // of that version, where they are to be compared
};

}  // namespace motley::engine
