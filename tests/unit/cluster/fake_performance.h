#pragma once
// What a driver knows of speeds, said by a test.

#include <algorithm>
#include <cstdint>
#include <span>

#include "modes/event.h"
#include "modes/performance_model.h"
#include "modes/work/pass.h"

namespace motley::cluster {

using namespace fleet;
using namespace modes;

struct FakePerformance : PerformanceModel {
  enum class Shares : std::uint8_t { equal, all_to_the_first, uneven } shares = Shares::equal;
  std::uint64_t grain = 1;  // of uneven shares and of what moves
  bool moves = false;       // what is under way, by fractions that differ from call to call
  Duration allowed = std::chrono::seconds(10), allowed_unheard = std::chrono::seconds(10);
  bool guessed = false;  // how long that is
  std::uint64_t to_calibrate = 0;
  Verdict verdict, comparison, resolution;

  void split(PassKind, std::uint64_t total, std::span<const WorkerId>, bool, std::span<std::uint64_t> counts) override {
    ++calls_;
    std::uint64_t left = total;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      counts[i] = i + 1 == counts.size() ? left : share(i, counts.size(), left);
      left -= counts[i];
    }
  }
  Duration allowance(PassKind, WorkerId, std::uint64_t) const override { return allowed; }
  bool guesses(PassKind, WorkerId) const override { return guessed; }
  Duration unheard_allowance(PassKind, WorkerId, std::uint64_t) const override { return allowed_unheard; }
  std::uint64_t calibration(WorkerId) const override { return to_calibrate; }
  std::uint64_t trial(WorkerId) const override { return 4; }
  std::uint64_t unit(WorkerId) const override { return moves ? grain : 0; }
  std::uint64_t shift(const Part& late, const Part& early) const override {
    const std::uint64_t most = std::min(free(late), early.ceiling - early.limit);
    return moves && (late.worker + calls_++) % 3 == 0 ? most * (calls_ % 4) / 4 / grain * grain : 0;
  }
  std::uint64_t relief(const Part& late, WorkerId, Duration) const override {
    return moves && calls_++ % 2 == 0 ? free(late) / 2 / grain * grain : 0;
  }
  Verdict judge(std::uint64_t, std::span<const WorkerId>, WorkerId) override { return verdict; }
  Verdict compare(std::uint64_t, WorkerId) override { return comparison; }
  Verdict resolve(std::uint64_t) override { return resolution; }

 private:
  /// Of what is left, for worker `i` of so many.
  [[nodiscard]] std::uint64_t share(std::size_t i, std::size_t workers, std::uint64_t left) const {
    if (shares == Shares::all_to_the_first) return left;
    return shares == Shares::equal ? left / (workers - i) : left * ((calls_ + i) % 4) / 4 / grain * grain;
  }
  [[nodiscard]] std::uint64_t free(const Part& late) const {
    return late.limit - std::min(late.limit, late.samples + grain);
  }

  mutable unsigned calls_ = 0;
};

}  // namespace motley::cluster
