#include "plan/advice.h"

#include <algorithm>
#include <vector>

#include "base/assert.h"
#include "base/format.h"

namespace motley::plan {
namespace {

// Below this part of a step a link, or the update, is not what limits it.
constexpr double kMatters = 0.15;

std::string milliseconds(double seconds) { return formatted(seconds < 0.01 ? "%.1f ms" : "%.0f ms", 1e3 * seconds); }

std::string list(const std::vector<const Outlook*>& workers) {
  std::string names;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    names.append(i == 0 ? "" : i + 1 == workers.size() ? " and " : ", ").append(workers[i]->name);
  }
  return names;
}

std::string limit_of(const StepOutlook& step, const std::vector<const Outlook*>& sharing) {
  std::string what;
  double most = kMatters * step.seconds;
  const auto may_be = [&](double seconds, const std::string& who) {
    if (seconds <= most) return;
    most = seconds;
    what = who;
  };
  may_be(step.update_seconds, "the coordinator, which updates the weights");
  may_be(step.link_seconds, "the link of the coordinator");
  // Several that wait for the coordinator's link are not held up by their own.
  if (step.link_seconds <= kMatters * step.seconds)
    for (const Outlook* worker : sharing) may_be(worker->exposed_seconds, "the link of " + worker->name);
  if (!what.empty()) return what + ": " + milliseconds(most) + " of a step of " + milliseconds(step.seconds);
  return sharing.size() == 1 ? "computing on " + list(sharing) : "computing on all of them";
}

}  // namespace

Advice advise(const StepOutlook& step, std::span<const Outlook> workers, std::optional<double> evaluation_seconds) {
  MOTLEY_ASSERT(!workers.empty() && step.seconds > 0);
  std::vector<const Outlook*> sharing;
  std::vector<const Outlook*> left_out;
  const Outlook* fastest = &workers[0];
  for (const Outlook& worker : workers) {
    (worker.samples > 0 ? sharing : left_out).push_back(&worker);
    if (worker.alone_samples_per_second > fastest->alone_samples_per_second) fastest = &worker;
  }
  Advice advice;
  const double gain =
      fastest->alone_samples_per_second > 0 ? step.samples_per_second / fastest->alone_samples_per_second : 1;
  if (workers.size() == 1) {
    advice.recommendation = "use " + fastest->name + ": nobody else has joined";
  } else if (sharing.size() > 1) {
    advice.recommendation = "use " + list(sharing);
    advice.recommendation += gain >= 1 ? formatted(": %.2f times ", gain) + fastest->name + " alone"
                                       : ": no gain over " + fastest->name + " alone by what is known so far";
  } else {
    advice.recommendation = "use " + list(sharing) + " alone";
  }
  for (const Outlook* worker : left_out) {
    advice.recommendation += "; leave " + worker->name + " out: a step would take " +
                             milliseconds(worker->least_step_seconds) + " with it instead of " +
                             milliseconds(step.seconds);
  }
  if (!left_out.empty() && evaluation_seconds) {
    advice.recommendation += (left_out.size() == 1 ? "; it evaluates" : "; one of them evaluates") +
                             std::string(" beside the training, which saves ") + milliseconds(*evaluation_seconds) +
                             " each time";
  }
  advice.limit = limit_of(step, sharing);
  return advice;
}

}  // namespace motley::plan
