#include "runtime/head/plan_modes.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"

namespace motley::runtime {
namespace {

constexpr double kSecondsOfDay = 86'400;

std::string bytes_text(double bytes) {
  constexpr double kTera = 1e12, kGiga = 1e9;
  if (bytes >= kTera) return formatted("%.1f TB", bytes / kTera);
  return bytes >= kGiga ? formatted("%.1f GB", bytes / kGiga) : formatted("%.0f MB", bytes / 1e6);
}

std::size_t sharing(const report::PlanMade& plan) {
  return static_cast<std::size_t>(
      std::ranges::count_if(plan.shares, [](const report::PlanMade::Share& share) { return share.samples > 0; }));
}

std::string rounds_of(std::uint64_t steps) {
  return formatted("rounds of %llu steps", static_cast<unsigned long long>(steps));
}

std::string price_of(std::uint64_t local_steps, std::size_t workers, const plan::RunOutline& run) {
  const std::string why = plan::against_rounds(run, workers, local_steps);
  const std::optional<plan::RoundPrice> price = plan::round_price(run.parameters, workers, local_steps);
  if (!why.empty() || !price) return why.empty() ? "what they cost in quality is not known" : why;
  return formatted("final loss likely about %.1f %% %s exact training at equal samples (published for text models of ",
                   std::abs(price->percent), price->percent < 0 ? "below" : "above") +
         "35 million to 2.4 billion parameters" + (price->smaller ? ", and carried on to smaller ones)" : ")");
}

std::string speed_text(double samples_per_s) {
  return formatted(samples_per_s < 100 ? "%.1f samples/s" : "%.0f samples/s", samples_per_s);
}

double all_speeds(const report::PlanMade& plan) {
  double speed = 0;
  for (const report::PlanMade::Share& share : plan.shares) speed += share.alone_samples_per_s;
  return speed;
}

// Speed, computing and bytes, as the plan has them.
report::ModeOutlook outlook_of(const report::PlanMade& plan, double exchanged) {
  report::ModeOutlook found{.samples_per_s = plan.samples_per_s};
  const double speed = all_speeds(plan);
  double busy = 0;
  for (const report::PlanMade::Share& share : plan.shares) busy += share.alone_samples_per_s * share.compute_s;
  if (plan.step_s <= 0) return found;
  if (speed > 0) found.computing = busy / (speed * plan.step_s);
  found.bytes_a_day = exchanged * kSecondsOfDay / plan.step_s;
  return found;
}

// Of the fastest device alone.
double times(double samples_per_s, const report::PlanMade& exact) {
  return exact.fastest_alone_samples_per_s > 0 ? samples_per_s / exact.fastest_alone_samples_per_s : 0;
}

}  // namespace

report::ModeOutlook exact_outlook(const report::PlanMade& exact, double exchanged) {
  report::ModeOutlook found = outlook_of(exact, exchanged);
  found.mode = "exact";
  found.loss_percent = 0;
  found.price = "the mathematics of one machine";
  return found;
}

report::ModeOutlook rounds_outlook(const report::PlanMade& round, std::uint64_t local_steps, double exchanged,
                                   const plan::RunOutline& run) {
  const std::size_t workers = sharing(round);
  report::ModeOutlook found = outlook_of(round, exchanged);
  found.mode = "rounds";
  found.local_steps = local_steps;
  found.price = price_of(local_steps, workers, run);
  if (const auto price = plan::round_price(run.parameters, workers, local_steps);
      price && plan::against_rounds(run, workers, local_steps).empty())
    found.loss_percent = price->percent;
  return found;
}

report::PlanMade round_of(report::PlanMade step, bool overlap) {
  if (!overlap) return step;
  double before = 0, after = 0;  // of the slowest
  for (report::PlanMade::Share& share : step.shares) {
    if (share.samples == 0) continue;
    before = std::max(before, share.compute_s + share.exposed_s);
    share.exposed_s = std::max(0.0, share.exposed_s - share.compute_s / 2);
    after = std::max(after, share.compute_s + share.exposed_s);
  }
  if (after <= 0 || after >= before) return step;
  step.step_s *= after / before;
  step.samples_per_s *= before / after;
  return step;
}

std::string line_of(const report::ModeOutlook& mode) {
  const std::string name = mode.local_steps == 0 ? mode.mode : rounds_of(mode.local_steps);
  return formatted("  %-20s ", name.c_str()) + speed_text(mode.samples_per_s) +
         formatted(", computes %.0f %% of the time, ", 1e2 * mode.computing) + bytes_text(mode.bytes_a_day) +
         " a day; " + mode.price;
}

plan::RunOutline outline_of(const config::RunConfig& config, std::uint64_t samples, std::uint64_t parameters) {
  const std::uint64_t batch = config.global_batch;
  plan::RunOutline run{.text = config.model_text, .parameters = parameters};
  run.steps = config.steps > 0 ? config.steps : config.epochs * ((samples + batch - 1) / batch);
  return run;
}

report::ModeChosen choose_mode(const Measured& measured, const Measured::Batch& batch) {
  const report::PlanMade& exact = batch.exact;
  const std::string steps = formatted("exact steps: %.2f times as fast as ", times(exact.samples_per_s, exact)) +
                            exact.fastest_alone + " alone";
  report::ModeChosen chosen{.mode = "exact", .sentence = steps, .exact_samples_per_s = exact.samples_per_s};
  if (!batch.round || sharing(*batch.round) < 2) {
    chosen.sentence += "; no round would have several devices";
    return chosen;
  }
  const std::uint64_t local_steps = measured.local_steps;
  const double speed = chosen.rounds_samples_per_s = batch.round->samples_per_s;
  const std::string rounds = rounds_of(local_steps) + formatted(": %.2f times as fast as ", times(speed, exact)) +
                             exact.fastest_alone + " alone";
  const std::size_t workers = sharing(*batch.round);
  const auto price = plan::round_price(measured.outline.parameters, workers, local_steps);
  const std::string why =
      !measured.no_rounds.empty() ? measured.no_rounds : plan::against_rounds(measured.outline, workers, local_steps);
  if (!why.empty() || !price) {
    chosen.sentence +=
        speed <= exact.samples_per_s ? ", and rounds would gain nothing" : "; not " + rounds + ": " + why;
    return chosen;
  }
  chosen.rounds_loss_percent = price->percent;
  if (plan::worth(speed, price->percent) <= exact.samples_per_s) {
    chosen.sentence += "; " + rounds + formatted(" are not worth a loss that is likely %.1f %% higher", price->percent);
    return chosen;
  }
  chosen.mode = "rounds";
  chosen.sentence = rounds + formatted(", exact steps %.2f times; ", times(exact.samples_per_s, exact)) +
                    price_of(local_steps, workers, measured.outline);
  return chosen;
}

std::optional<report::AdviceGiven> advise_rounds(const report::PlanMade& exact, const report::PlanMade& round,
                                                 std::uint64_t local_steps, const plan::RunOutline& run) {
  constexpr double kNoGain = 1.02;  // over the fastest alone, within what predictions are good for
  constexpr double kPays = 1.2;     // times as fast at the least
  const double fastest = exact.fastest_alone_samples_per_s;
  if (exact.shares.size() < 2 || fastest <= 0 || local_steps == 0 || sharing(round) < 2) return std::nullopt;
  if (exact.samples_per_s > kNoGain * fastest) return std::nullopt;
  if (round.samples_per_s < kPays * std::max(exact.samples_per_s, fastest)) return std::nullopt;
  const double step_s = round.step_s / static_cast<double>(local_steps);
  return report::AdviceGiven{
      .set = "train.mode=rounds",
      .saves_s = std::max(0.0, exact.step_s - step_s),
      .step_s = exact.step_s,
      .sentence = "The links are too slow for a gradient a step: exact steps are no faster than " +
                  exact.fastest_alone + " alone, and " + rounds_of(local_steps) +
                  formatted(" would be about %.1f times as fast. They are another training: ",
                            times(round.samples_per_s, exact)) +
                  price_of(local_steps, sharing(round), run) + "."};
}

}  // namespace motley::runtime
