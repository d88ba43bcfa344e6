#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <tuple>

#include "data/order.h"
#include "store/ledger.h"

namespace motley::store {
namespace {

constexpr std::size_t kFindingsMax = 100;

std::uint64_t add(std::uint64_t a, std::uint64_t b) {
  return a > std::numeric_limits<std::uint64_t>::max() - b ? std::numeric_limits<std::uint64_t>::max() : a + b;
}
std::uint64_t multiply(std::uint64_t a, std::uint64_t b) {
  return b != 0 && a > std::numeric_limits<std::uint64_t>::max() / b ? std::numeric_limits<std::uint64_t>::max()
                                                                     : a * b;
}

// Where the steps of a run lie.
struct Shape {
  std::uint64_t samples;  // of an epoch
  BatchPlan plan;
  explicit Shape(const Ledger& ledger)
      : samples(used_samples(ledger.header.samples, ledger.header.global_batch, ledger.header.drop_last)),
        plan(samples, ledger.header.global_batch, ledger.batch_changes) {}
  [[nodiscard]] std::uint64_t size_of(std::uint64_t step) const { return plan.range(step).count; }
  [[nodiscard]] std::uint64_t samples_before(std::uint64_t step) const {
    const StepRange at = plan.range(step);
    return add(multiply(at.epoch, samples), at.order_first);
  }
};

bool usable(const LedgerHeader& header) { return header.samples > 0 && header.global_batch > 0; }

/// What counted of each step in later ones.
std::map<std::uint64_t, std::vector<LedgerRange>> late_by_step(const Ledger& ledger, std::uint64_t before) {
  std::map<std::uint64_t, std::vector<LedgerRange>> found;
  for (const LedgerStep& step : ledger.steps) {
    for (const LedgerLate& late : step.late) {
      if (step.step >= before) continue;
      std::vector<LedgerRange>& ranges = found[late.step];
      ranges.insert(ranges.end(), late.ranges.begin(), late.ranges.end());
    }
  }
  return found;
}

constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();

class Auditor {
 public:
  Auditor(const Ledger& ledger, bool makes_up)
      : ledger_(ledger), makes_up_(makes_up), shape_(ledger), late_(late_by_step(ledger, kAll)) {}

  Audit run() {
    std::uint64_t next = 0;
    for (const LedgerStep& step : ledger_.steps) {
      if (step.step > next) skipped(next, step.step);
      if (step.step < next) {
        find("step " + std::to_string(step.step) + " is committed more than once");
        audit_.duplicate = add(audit_.duplicate, shape_.size_of(step.step));
      } else {
        check(step);
        next = step.step + 1;
      }
    }
    if (!ledger_.steps.empty()) audit_.epochs = shape_.plan.range(ledger_.steps.back().step).epoch + 1;
    if (unsaid_ > 0) audit_.findings.push_back("… and " + std::to_string(unsaid_) + " more");
    return std::move(audit_);
  }

 private:
  void find(std::string sentence) {
    if (audit_.findings.size() < kFindingsMax) {
      audit_.findings.push_back(std::move(sentence));
    } else {
      ++unsaid_;
    }
  }
  static std::string interval(std::uint64_t first, std::uint64_t end) {
    return end - first == 1 ? "position " + std::to_string(first)
                            : "positions " + std::to_string(first) + " to " + std::to_string(end - 1);
  }
  void skipped(std::uint64_t first, std::uint64_t end) {
    const std::uint64_t samples = shape_.samples_before(end) - shape_.samples_before(first);
    audit_.missing = add(audit_.missing, samples);
    find((end - first == 1 ? "step " + std::to_string(first) + " is"
                           : "steps " + std::to_string(first) + " to " + std::to_string(end - 1) + " are") +
         " not in the ledger (" + std::to_string(samples) + " samples)");
  }
  void missing(const LedgerStep& step, std::uint64_t first, std::uint64_t end) {
    if (makes_up_) {
      audit_.owed = add(audit_.owed, end - first);
      return;
    }
    audit_.missing = add(audit_.missing, end - first);
    find("step " + std::to_string(step.step) + ": " + interval(first, end) + " not covered");
  }
  void duplicate(const LedgerStep& step, const LedgerRange& range, std::uint64_t first, std::uint64_t end,
                 const char* how) {
    audit_.duplicate = add(audit_.duplicate, end - first);
    find("step " + std::to_string(step.step) + ": " + interval(first, end) + " of " + range.worker + " " + how);
  }
  void check(const LedgerStep& step) {
    const std::uint64_t size = shape_.size_of(step.step);
    std::vector<LedgerRange> ranges = step.ranges;
    if (const auto late = late_.find(step.step); late != late_.end())
      ranges.insert(ranges.end(), late->second.begin(), late->second.end());
    std::sort(ranges.begin(), ranges.end(), [](const LedgerRange& a, const LedgerRange& b) {
      return std::tie(a.first, a.count, a.worker) < std::tie(b.first, b.count, b.worker);
    });
    std::uint64_t covered = 0;  // all positions before are
    for (const LedgerRange& range : ranges) {
      const std::uint64_t end = add(range.first, range.count);
      const std::uint64_t inside = std::min(end, size);
      // Positions past the step's end belong to the next step, so using them here is using them twice.
      if (end > size && range.count > 0)
        duplicate(step, range, std::max(range.first, size), end, "past the end of the step");
      if (range.first >= inside) continue;
      if (range.first < covered) duplicate(step, range, range.first, std::min(covered, inside), "covered before");
      if (range.first > covered) missing(step, covered, range.first);
      if (inside > covered) {
        audit_.samples = add(audit_.samples, inside - std::max(covered, range.first));
        covered = inside;
      }
    }
    if (covered < size) missing(step, covered, size);
  }

  const Ledger& ledger_;
  bool makes_up_;
  Shape shape_;
  std::map<std::uint64_t, std::vector<LedgerRange>> late_;
  Audit audit_;
  std::uint64_t unsaid_ = 0;
};

}  // namespace

Audit audit(const Ledger& ledger, bool makes_up) {
  if (!usable(ledger.header)) {
    Audit nothing;
    nothing.findings.push_back("the header names no samples or no global batch");
    return nothing;
  }
  return Auditor(ledger, makes_up).run();
}

std::vector<Owed> owed(const Ledger& ledger, std::uint64_t version) {
  std::vector<Owed> found;
  if (!usable(ledger.header)) return found;
  const Shape shape(ledger);
  const auto late = late_by_step(ledger, version);
  for (const LedgerStep& step : ledger.steps) {
    if (step.step >= version) break;
    std::vector<LedgerRange> ranges = step.ranges;
    if (const auto more = late.find(step.step); more != late.end())
      ranges.insert(ranges.end(), more->second.begin(), more->second.end());
    std::ranges::sort(ranges, {}, &LedgerRange::first);
    std::uint64_t covered = 0;
    const auto missing = [&](std::uint64_t until) {
      if (until > covered) found.push_back({step.step, covered, until - covered});
    };
    for (const LedgerRange& range : ranges) {
      missing(range.first);
      covered = std::max(covered, add(range.first, range.count));
    }
    missing(shape.size_of(step.step));
  }
  return found;
}

std::vector<std::uint64_t> order_of(const Ledger& ledger, std::uint64_t epoch) {
  std::vector<std::uint64_t> samples;
  if (!usable(ledger.header)) return samples;
  const Shape shape(ledger);
  const data::SampleOrder order(ledger.header.seed, epoch, ledger.header.samples, !ledger.header.in_order);
  const auto take = [&](std::uint64_t step, const std::vector<LedgerRange>& ranges) {
    const StepRange at = shape.plan.range(step);
    if (at.epoch != epoch) return;
    for (const LedgerRange& range : ranges) {
      if (range.first >= at.count) continue;
      const std::uint64_t count = std::min(range.count, at.count - range.first);
      const std::size_t begin = samples.size();
      samples.resize(begin + static_cast<std::size_t>(count));
      order.fill(at.order_first + range.first, std::span(samples).subspan(begin));
    }
  };
  for (const LedgerStep& step : ledger.steps) {
    for (const LedgerLate& late : step.late) take(late.step, late.ranges);
    take(step.step, step.ranges);
  }
  return samples;
}

}  // namespace motley::store
