#include "plan/way_trial.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "base/assert.h"
#include "base/format.h"

namespace motley::plan {

WayTrial::WayTrial(std::vector<Way> ways) : ways_(std::move(ways)), best_(ways_.back()) {
  MOTLEY_ASSERT(!ways_.empty() && std::ranges::is_sorted(ways_));
  begin();
}

void WayTrial::begin() {
  asked_ = false;
  left_.clear();
  std::ranges::copy_if(ways_, std::back_inserter(left_), [this](Way way) { return way != best_; });
  closest_.reset();
  steps_ = 0;
  next();
}

void WayTrial::begin_block(Way way) noexcept { trying_ = Block{.way = way}; }

void WayTrial::again() noexcept {
  if (trying_) begin_block(trying_->way);
}

void WayTrial::others() noexcept {
  asked_ = true;
  if (trying_) begin_block(best_);
  pairs_ = {kPairsMax, kLeastGain};
}

void WayTrial::closed(Way went, double seconds, bool counts) noexcept {
  if (!trying_) {
    ++since_;
    if (asked_ && since_ >= rest_) begin();
    return;
  }
  if (++steps_ > kStepsMax) {
    left_.clear();
    return next();
  }
  Block& block = *trying_;
  if (went == block.way && block.cold > 0) {
    --block.cold;
  } else if (went == block.way && counts) {
    block.steps.add(seconds);
    if (against_best() && block.steps.count >= kClearSteps) {
      const double longer = block.steps.mean / of_best_.mean;
      if (longer > kClear) return drop(longer - 1);
      if (longer < 1 / kClear) return take(1 / longer - 1);
    }
    if (block.steps.count == kBlock) end_block();
    return;
  }
  if (++block.waited < kPatience) return;
  if (block.way != best_) return drop({});
  best_ = left_.back();
  left_.pop_back();
  next();
}

void WayTrial::end_block() {
  if (trying_->way != best_) return weigh();
  of_best_ = trying_->steps;
  begin_block(left_.back());
}

void WayTrial::weigh() {
  const bool more = trying_->way > best_;
  const Durations &with = more ? trying_->steps : of_best_, &without = more ? of_best_ : trying_->steps;
  const std::optional<bool> pays = pairs_.add(gain(with, without));
  if (!pays) return begin_block(best_);
  if (*pays != more) return drop(more ? -pairs_.mean() : pairs_.mean());
  take(more ? pairs_.mean() : -pairs_.mean());
}

void WayTrial::take(double gain) {
  closest_ = gain;
  best_ = trying_->way;
  left_.pop_back();
  next();
}

void WayTrial::drop(std::optional<double> gain) {
  if (gain) closest_ = std::min(*gain, closest_.value_or(*gain));
  left_.pop_back();
  next();
}

// Another one against the best, or the answer.
void WayTrial::next() {
  pairs_ = {kPairsMax, kLeastGain};
  if (!left_.empty()) return begin_block(best_);
  trying_.reset();
  since_ = 0;
  rest_ *= 2;
  found_ = closest_;
}

std::string WayTrial::why() const {
  static constexpr std::array kWays{"the head sends and gets all numbers", "weights go from worker to worker",
                                    "weights and gradients go from worker to worker"};
  std::string now = kWays[static_cast<std::size_t>(way())];
  if (trying_) return now + " while ways are compared";
  if (!found_) return now;
  constexpr double kSeen = 0.005;
  return now + (*found_ < kSeen ? ": no other way is faster, measured"
                                : formatted(": any other way a step takes %.0f %% longer, measured", 100 * *found_));
}

}  // namespace motley::plan
