#include "runtime/head/plan.h"

#include <algorithm>

#include "base/format.h"
#include "runtime/head/measuring.h"
#include "runtime/head/plan_modes.h"

namespace motley::runtime {
namespace {

std::string link_text(const report::PlanMade::Share& share) {
  const auto megabits = [](double bytes_per_s) { return 8e-6 * bytes_per_s; };
  std::string text;
  if (share.up_bytes_per_s > 0) text += formatted("; sends %.3g Mbit/s", megabits(share.up_bytes_per_s));
  if (share.down_bytes_per_s > 0)
    text += formatted(text.empty() ? "; receives %.3g Mbit/s" : ", receives %.3g", megabits(share.down_bytes_per_s));
  return text;
}

void print_table(const report::PlanMade& plan, std::uint64_t samples, report::Sink& sink) {
  for (const report::PlanMade::Share& share : plan.shares) {
    const std::string part = share.samples == 0
                                 ? std::string("left out")
                                 : formatted("%llu of %llu samples, computes %.1f ms, waits %.1f ms for the wire",
                                             static_cast<unsigned long long>(share.samples),
                                             static_cast<unsigned long long>(plan.global_batch), 1e3 * share.compute_s,
                                             1e3 * share.exposed_s);
    sink.take(
        report::Note{formatted("  %-20s alone %.0f samples/s; ", share.worker.c_str(), share.alone_samples_per_s) +
                     part + link_text(share)});
  }
  sink.take(report::Note{
      formatted("  an epoch takes %.1f s; limited by ", static_cast<double>(samples) / plan.samples_per_s) +
      plan.limit});
}

std::vector<report::ModeOutlook> modes_of(const Measured& found, const Measured::Batch& batch) {
  std::vector<report::ModeOutlook> modes{exact_outlook(batch.exact, found.exchanged)};
  if (batch.round && found.no_rounds.empty())
    modes.push_back(rounds_outlook(*batch.round, found.local_steps, found.exchanged, found.outline));
  return modes;
}

}  // namespace

Status plan(const PlanOptions& options, ModelProvider& provider, report::Sink& sink, StopSource& stop) {
  const Result<Measured> found = measure({.train = options.train,
                                          .seconds = options.seconds,
                                          .global_batches = options.global_batches,
                                          .begun = options.begun},
                                         provider, sink, stop);
  if (!found) return found.error();
  for (const Measured::Batch& batch : found->batches) {
    report::PlanMade shown = batch.exact;
    shown.modes = modes_of(*found, batch);
    sink.take(shown);
    print_table(shown, found->samples, sink);
    for (const report::ModeOutlook& mode : shown.modes) sink.take(report::Note{line_of(mode)});
    if (batch.round) sink.take(choose_mode(*found, batch));
  }
  return {};
}

}  // namespace motley::runtime
