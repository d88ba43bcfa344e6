#include "plan/shift.h"

#include <algorithm>

#include "base/assert.h"

namespace motley::plan {
namespace {

constexpr double kWorthShifting = 0.03;  // of the pass: below it the models know too little to say who is late
// A helper sends a whole gradient more, over a link that others may need.
constexpr double kWorthHelping = 0.2;
constexpr double kWorthHelpingSeconds = 0.05;

struct Course {
  double per_sample = 0;
  double end = 0;  // seconds from the newest report to the last byte, without the samples still to do
};

Course course_of(const Part& part) noexcept {
  const double fixed = part.time.fixed;
  const auto micro_batch = static_cast<double>(part.micro_batch);
  double rate = part.time.per_sample;
  if (part.first.samples > 0) {
    // How much of the fixed time came before the first report is not known: from none to all of it.
    const auto samples = static_cast<double>(part.first.samples);
    rate = std::clamp(rate, std::max(0.0, part.first.at - fixed) / samples, std::max(part.first.at, 1e-9) / samples);
    const auto since = static_cast<double>(part.newest.samples - part.first.samples);
    rate = (rate * micro_batch + part.newest.at - part.first.at) / (micro_batch + since);
  }
  const double before = part.first.samples == 0
                            ? fixed
                            : std::clamp(part.first.at - rate * static_cast<double>(part.first.samples), 0.0, fixed);
  // The micro-batch under way ends now at the soonest.
  const double silent = part.age - part.newest.at - (part.first.samples == 0 ? fixed : 0);
  rate = std::max(rate, silent / micro_batch);
  return {.per_sample = rate, .end = part.first.samples == 0 ? fixed : fixed - before};
}

double remaining(const Part& part, const Course& course, std::uint64_t samples) noexcept {
  const auto left = static_cast<double>(samples - std::min(samples, part.newest.samples));
  return part.newest.at + course.per_sample * left + course.end - part.age;
}

}  // namespace

double remaining(const Part& part, std::uint64_t samples) noexcept { return remaining(part, course_of(part), samples); }

Shift best_shift(const Part& late, const Part& early, std::uint64_t unit) noexcept {
  MOTLEY_ASSERT(unit > 0 && late.micro_batch > 0 && early.micro_batch > 0 && early.limit <= early.ceiling);
  const Course slow = course_of(late);
  const Course fast = course_of(early);
  const auto ends = [&](std::uint64_t units) {
    return std::max(remaining(late, slow, late.limit - units * unit),
                    remaining(early, fast, early.limit + units * unit));
  };
  const std::uint64_t started = late.newest.samples + late.micro_batch;
  const std::uint64_t free = late.limit > started ? late.limit - started : 0;
  const std::uint64_t most = std::min(free, early.ceiling - early.limit) / unit;
  Shift shift{.before = ends(0), .after = ends(0)};
  const double apart = remaining(late, slow, late.limit) - remaining(early, fast, early.limit);
  if (most == 0 || !(apart > 0)) return shift;
  // They meet where the one has lost what the other has gained; the best whole number is next to it.
  const double meet = apart / ((slow.per_sample + fast.per_sample) * static_cast<double>(unit));
  const std::uint64_t below = meet < static_cast<double>(most) ? static_cast<std::uint64_t>(meet) : most;
  for (const std::uint64_t units : {below, std::min(below + 1, most)}) {
    if (ends(units) >= shift.after) continue;
    shift.samples = units * unit;
    shift.after = ends(units);
  }
  return shift;
}

std::uint64_t worth_shifting(const Part& late, const Part& early, std::uint64_t unit) noexcept {
  if (early.newest.samples >= early.limit) return 0;  // its contribution has begun
  const Shift shift = best_shift(late, early, unit);
  return shift.before - shift.after > kWorthShifting * (late.age + shift.before) ? shift.samples : 0;
}

std::uint64_t worth_helping(const Part& late, const Part& helper, std::uint64_t unit, double age) noexcept {
  const Shift shift = best_shift(late, helper, unit);
  const double least = std::max(kWorthHelpingSeconds, kWorthHelping * (age + shift.before));
  return shift.before - shift.after > least ? shift.samples : 0;
}

}  // namespace motley::plan
