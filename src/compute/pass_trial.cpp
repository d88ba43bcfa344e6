#include "compute/pass_trial.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "compute/probe.h"

namespace motley::compute {
namespace {

constexpr double kRoom = 0.5;       // of the seconds that a pass may take: what it is made for
constexpr std::uint32_t kFew = 4;   // samples of the first pass of all
constexpr std::uint32_t kJump = 8;  // times the samples of the pass before, at most
constexpr std::size_t kLooks = 3;   // before a difference is believed: a sample at the kink of a ReLU moves a tensor
constexpr double kApart = 1e-2;     // sums in another order are 1e-5 apart, faults that are known a hundredth or more
constexpr std::uint32_t kUntried = 32;  // samples of a pass where nothing can be tried

class PassTrial {
 public:
  PassTrial(TaskLoop& loop, const Layout& layout, const Task& like, const PassesWanted& wanted)
      : loop_(loop), layout_(layout), like_(like), wanted_(wanted) {
    MOTLEY_ASSERT(wanted.group > 0 && wanted.most > 0 && wanted.clock);
    const auto here = static_cast<std::uint32_t>(std::min<std::uint64_t>(like.indices.size(), 1U << 31));
    most_ = std::max(std::min(wanted.most, here) / wanted.group, 1U) * wanted.group;
  }

  Result<PassesTried> run() {
    if (layout_.flat_elements() > kProbeElementsMax || most_ > like_.indices.size()) return untried();
    Result<std::uint32_t> found = search();
    if (!found) return given_up(found.error());
    for (std::uint32_t most = *found;; most = std::max(most / 2, wanted_.group)) {
      sizes_ = pass_sizes(full_pass(most, most_, wanted_.group), wanted_.group, wanted_.care.repeats);
      Result<PassesTried> tried = compare();
      const bool smaller = sizes_.full > wanted_.group;
      if (!tried && smaller && is_too_much(tried.error())) continue;
      if (!tried) return given_up(tried.error());
      if (tried->seconds < wanted_.care.pass_seconds || !smaller) return tried;
    }
  }

 private:
  /// The largest pass that is short enough, by doubling.
  Result<std::uint32_t> search() {
    const double room = kRoom * wanted_.care.pass_seconds;
    // Fewer than a group, where there are groups: a slow device takes long enough for these.
    std::uint32_t size = std::min(wanted_.group, kFew), last = 0;
    for (;; last = std::exchange(size, next_)) {
      Result<double> took = time_of(size, size);
      if (took) took = time_of(size, size);  // the first one made what the device runs, and measured that
      if (!took && last >= wanted_.group && is_too_much(took.error())) return last;
      if (!took) return took.error();
      const double times = *took > 0 ? room / *took : kJump;
      if (size < wanted_.group) {
        next_ = wanted_.group;
        if (times < static_cast<double>(next_) / size) return next_;
        continue;
      }
      if (times < 2 || size >= most_) return times < 1 ? std::max(size / 2, wanted_.group) : size;
      const auto jump = std::bit_floor(static_cast<std::uint32_t>(std::min<double>(times, kJump)));
      next_ = std::min(size * jump, most_);
      if (!wanted_.fits(size, next_)) return size;
    }
  }

  Result<PassesTried> compare() {
    PassesTried tried{sizes_, 0, {}};
    if (sizes_.full == sizes_.odd) return tried;  // it will see no other
    std::vector<std::vector<float>> ones, others;
    while (ones.size() < kLooks) {
      const std::size_t which = ones.size();
      const Result<std::vector<float>> before = once(sizes_.odd, sizes_.odd, which);
      if (!before) return before.error();
      const double began = wanted_.clock();
      Result<std::vector<float>> one = once(sizes_.full, sizes_.full, which);
      tried.seconds = wanted_.clock() - began;
      if (!one) return one.error();
      Result<std::vector<float>> sum = once(sizes_.full, sizes_.odd, which);
      if (!sum) return sum.error();
      ones.push_back(std::move(*one));
      others.push_back(std::move(*sum));
      const std::optional<PassDifference> found = compare_passes(layout_, ones, others);
      tried.wrong = found && !(found->worst <= kApart) ? words_of(*found) : "";
      if (tried.wrong.empty()) break;
    }
    return tried;
  }

  [[nodiscard]] std::string words_of(const PassDifference& found) const {
    char far[32];
    std::snprintf(far, sizeof far, "%.2g", found.worst);
    return "the gradient of " + std::to_string(sizes_.full) + " samples in one pass, after one of " +
           std::to_string(sizes_.odd) + ", differs from their sum in passes of " + std::to_string(sizes_.odd) +
           ", in " + found.tensor + " by " + far + " of its size";
  }

  Result<std::vector<float>> once(std::uint32_t samples, std::uint32_t pass, std::size_t which) {
    Task task = like_;
    task.indices = like_.indices.first(samples);
    task.micro_batch = pass;
    task.odd = std::min(pass, std::max(sizes_.odd, wanted_.group));
    return probe_once(loop_, layout_, task, which);
  }

  Result<double> time_of(std::uint32_t samples, std::uint32_t pass) {
    const double began = wanted_.clock();
    const Result<std::vector<float>> found = once(samples, pass, 0);
    if (!found) return found.error();
    return wanted_.clock() - began;
  }

  /// A model that cannot be tried is no fault of the device.
  Result<PassesTried> given_up(const Error& error) {
    if (error.code == ErrorCode::memory || loop_.fault()) return error;
    return untried();
  }
  /// A smaller pass may do.
  [[nodiscard]] bool is_too_much(const Error& error) const {
    return error.code == ErrorCode::memory || (loop_.fault() && loop_.fault()->kind == Fault::Kind::too_long);
  }
  [[nodiscard]] PassesTried untried() const {
    return {pass_sizes(std::min(most_, kUntried), wanted_.group, wanted_.care.repeats), 0, {}};
  }

  TaskLoop& loop_;
  const Layout& layout_;
  const Task& like_;
  const PassesWanted& wanted_;
  std::uint32_t most_, next_ = 0;
  PassSizes sizes_{};
};

}  // namespace

Result<PassesTried> try_passes(TaskLoop& loop, const Layout& layout, const Task& like, const PassesWanted& wanted) {
  return PassTrial(loop, layout, like, wanted).run();
}

}  // namespace motley::compute
