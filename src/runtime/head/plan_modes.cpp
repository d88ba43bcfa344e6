#include "runtime/head/plan_modes.h"

#include "base/format.h"

namespace motley::runtime {
namespace {

std::string bytes_text(double bytes) {
  constexpr double kTera = 1e12, kGiga = 1e9;
  if (bytes >= kTera) return formatted("%.1f TB", bytes / kTera);
  return bytes >= kGiga ? formatted("%.1f GB", bytes / kGiga) : formatted("%.0f MB", bytes / 1e6);
}

}  // namespace

ModeOutlook outlook_of(const report::PlanMade& plan, std::uint64_t local_steps, double exchanged) {
  constexpr double kSecondsOfDay = 86'400;
  ModeOutlook found{.local_steps = local_steps, .samples_per_s = plan.samples_per_s};
  double speed = 0, busy = 0;
  for (const report::PlanMade::Share& share : plan.shares) {
    speed += share.alone_samples_per_s;
    busy += share.alone_samples_per_s * share.compute_s;
  }
  if (plan.step_s <= 0) return found;
  if (speed > 0) found.computing = busy / (speed * plan.step_s);
  found.bytes_a_day = exchanged * kSecondsOfDay / plan.step_s;
  return found;
}

std::string line_of(const ModeOutlook& mode, bool text_model) {
  const std::string name = mode.local_steps == 0
                               ? std::string("exact")
                               : formatted("rounds of %llu steps", static_cast<unsigned long long>(mode.local_steps));
  const std::string price = mode.local_steps == 0 ? "the mathematics of one machine"
                            : text_model
                                ? "final loss likely 0.5 to 1.5 % above exact training at equal samples (published, "
                                  "for 90 to 180 million parameters and 2 to 4 workers)"
                                : "what it costs in quality is not tested for this kind of model";
  return formatted("  %-20s %.0f samples/s, computes %.0f %% of the time, ", name.c_str(), mode.samples_per_s,
                   1e2 * mode.computing) +
         bytes_text(mode.bytes_a_day) + " a day; " + price;
}

}  // namespace motley::runtime
