#include "plan/verdicts.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "plan/shares.h"

namespace motley::plan {
namespace {

constexpr double kLeastGain = 0.01;  // of a pass, for which a worker is worth its energy
// The mean of n passes is believed to be off by kDoubt (1/√n - 1/√kCompared) at the most, before anything is compared.
constexpr std::uint32_t kComparedLeast = 3;
constexpr double kDoubt = 0.2;
constexpr double kClear = 1.25;  // times as long as one worker alone, or as short: no need to compare

constexpr std::uint32_t kStepsLeast = 2;  // of a block alone
constexpr std::uint32_t kBlocksMax = 12;
constexpr double kBeyondChance = 2.33;  // standard errors: one in a hundred is further off, on one side
constexpr double kBeyondChoice = 4.5;   // likewise, of the slowest of several
// How much durations vary is known of few of them: as if so many more had varied so much.
constexpr double kUsualNoise = 0.05, kUsualCount = 2;
// Passes behind an answer, twice as many after each.
constexpr std::uint32_t kBetween = 32, kDoublingsMax = 5;

double squared(double x) noexcept { return x * x; }

}  // namespace

Verdict judge(const Request& request, std::span<const Candidate> candidates, const Candidate& mine,
              std::optional<double> alone) {
  MOTLEY_ASSERT(measured(candidates) && mine.time);
  std::vector<Candidate> all = allowing_for_spread(candidates);
  const Plan before = make_plan(request, all);
  const double without = std::min(before.seconds, alone.value_or(before.seconds));
  all.push_back(mine);
  const Plan with = make_plan(request, all);
  if (with.counts.back() > 0 && with.seconds <= (1 - kLeastGain) * without) return {};
  const auto others = static_cast<double>(senders(candidates, before.counts));
  double least = mine.remote ? (others + 1) * request.link_seconds : 0;
  for (Candidate& each : all) {  // if it did send, beside those that do
    if (mine.remote && each.remote) each.time->fixed += others * std::exchange(each.wait, 0);
  }
  least = std::max(least, all.back().time->seconds(static_cast<double>(request.grain)));
  least = std::max(least, make_plan({.total = request.total, .grain = request.grain}, all).seconds);
  return {.pays = false, .with = least, .without = without};
}

void Comparison::begin() noexcept { *this = {}; }

void Comparison::Steps::add(double seconds) noexcept {
  const double from = seconds - mean;
  mean += from / ++count;
  squares += from * (seconds - mean);
}

void Comparison::closed(double seconds, bool counts) noexcept {
  if (counts) passes_.seconds[passes_.count++ % kCompared] = seconds;
}

void Comparison::alone(double seconds) noexcept {
  if (block_.total == 0) return;
  if (block_.begun) block_.alone.add(seconds);
  block_.begun = true;
}

Comparison::Steps Comparison::newest() const noexcept {
  Steps found;
  for (std::uint32_t i = 0; i < std::min(passes_.count, kCompared); ++i) found.add(passes_.seconds[i]);
  return found;
}

bool Comparison::rests() const noexcept {
  return answered_ > 0 && passes_.count < kBetween << std::min(answered_, kDoublingsMax);
}

Comparison::Gain Comparison::gain(const Steps& with, const Steps& alone) noexcept {
  const double usual = kUsualCount * (squared(kUsualNoise * with.mean) + squared(kUsualNoise * alone.mean)) / 2;
  const double variance = (with.squares + alone.squares + usual) / (with.count + alone.count - 2 + kUsualCount);
  return {.mean = (alone.mean - with.mean) / with.mean,
          .variance = variance * (1.0 / with.count + 1.0 / alone.count) / squared(with.mean)};
}

Verdict Comparison::compare(std::uint64_t total, std::optional<double> alone, std::optional<double> computes) noexcept {
  const Steps with = newest();
  if (with.count < kComparedLeast) return {};
  const double doubt = kDoubt * (1 / std::sqrt(with.count) - 1 / std::sqrt(kCompared));
  const double least = with.mean / (1 + doubt);
  if (alone && least > kClear * *alone) return {.pays = false, .with = with.mean, .without = *alone};
  if (alone_.count > 0) return with.count < kCompared ? Verdict{} : weigh(with, total);
  const auto known = alone ? alone : computes;
  if (!known || rests()) return {};
  const bool clear = !alone && kClear * with.mean < *known;
  if (alone || with.count < kCompared ? least <= *known : clear) return {};
  block_ = {.total = total, .doubted = with, .alone = {}, .begun = false};
  return {.pays = false};
}

Verdict Comparison::weigh(const Steps& with, std::uint64_t total) noexcept {
  const Steps alone = std::exchange(alone_, {});
  const Gain found = gain(with, alone);
  evidence_.gain += found.mean;
  evidence_.variance += found.variance;
  const double mean = evidence_.gain / ++evidence_.blocks;
  const double chance = kBeyondChance * std::sqrt(evidence_.variance) / evidence_.blocks;
  if (mean >= -chance && mean <= chance && evidence_.blocks < kBlocksMax) {
    block_ = {.total = total, .doubted = {}, .alone = {}, .begun = false};
    return {.pays = false};
  }
  const bool pays = mean > chance || (evidence_.blocks == kBlocksMax && mean >= kLeastGain);
  evidence_ = {};
  if (!pays) return {.pays = false, .with = with.mean, .without = std::min(with.mean, alone.mean)};
  ++answered_;
  return {};
}

Verdict Comparison::resolve(std::uint64_t total) noexcept {
  const auto block = std::exchange(block_, {});
  if (block.total != total || block.alone.count < kStepsLeast) {
    ++answered_;
    return {};
  }
  alone_ = block.alone;
  if (block.doubted.count == 0) return {};
  // These passes are slower than usual, since they led to the doubt: they show a gain, or a large loss.
  const Gain found = gain(block.doubted, block.alone);
  const double chance = std::sqrt(found.variance);
  if (found.mean > kBeyondChance * chance) ++answered_, alone_ = {};
  if (found.mean >= -kBeyondChoice * chance) return {};
  alone_ = {};
  return {.pays = false, .with = block.doubted.mean, .without = block.alone.mean};
}

}  // namespace motley::plan
