#pragma once
// What rounds are made of: positions that are owed from rounds before, then those of their own. One thread at a time.

#include <cstdint>
#include <utility>

#include "modes/rounds/round_plan.h"
#include "modes/run.h"
#include "modes/work/pass_work.h"

namespace motley::modes {

class RoundSource {
 public:
  /// REQUIRES it outlives this.
  explicit RoundSource(const Run& run) : run_(run), owed_(run.config.owed) {}

  /// The round that leads on from this version. What is owed comes first in it, and is owed no more.
  [[nodiscard]] OpenPass round(std::uint64_t version);
  /// Comes before all that is owed.
  void owe(const RoundSpans& first) { owed_.insert(owed_.begin(), first.begin(), first.end()); }
  [[nodiscard]] const RoundSpans& owed() const noexcept { return owed_; }

 private:
  const Run& run_;
  RoundSpans owed_;
};

}  // namespace motley::modes
