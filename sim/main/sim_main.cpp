// sim: runs the engine in a simulated world. A seed stands for the machines, the network and all that goes wrong.
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "base/format.h"
#include "sim/simulation.h"

namespace {

using namespace motley;

struct Flags {
  std::uint64_t seed = 0, steps = 0, rounds = 0;
  bool trace = false, faulty = false, overlap = false;
  double verify = 0;
  bool skewed = false;
  std::string liar;
  std::string seeds, gradients = "fp32", weights = "fp32", holds = "never";
  double minutes = 0;
};

constexpr double kRarely = 0.02;  // of the leases of who lies rarely

std::string replay;  // the seed that runs: also an abort names it

std::string how_to_replay(std::uint64_t seed, const Flags& flags) {
  return "replay: sim --seed " + std::to_string(seed) +
         (flags.steps > 0 ? " --steps " + std::to_string(flags.steps) : "") +
         (flags.rounds > 0 ? " --rounds " + std::to_string(flags.rounds) : "") + (flags.overlap ? " --overlap" : "") +
         (flags.gradients == "fp32" ? "" : " --gradients " + flags.gradients) +
         (flags.weights == "fp32" ? "" : " --weights " + flags.weights) +
         (flags.holds == "never" ? "" : " --holds " + flags.holds) + (flags.faulty ? " --faulty" : "") +
         (flags.verify > 0 ? " --verify " + formatted("%g", flags.verify) : "") +
         (flags.liar.empty() ? "" : " --liar " + flags.liar) + (flags.skewed ? " --skewed" : "") + " --trace\n";
}

extern "C" void on_abort(int) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, replay.data(), replay.size());
}

std::string about_liar(const sim::Report& report) {
  return std::string("the liar is ") + (report.liar_out ? "out" : "in") + " after " +
         std::to_string(report.liar_steps) + " steps; " + std::to_string(report.sound_struck) +
         " strikes of others; samples computed twice " + std::to_string(report.verified);
}

sim::Report run_one(std::uint64_t seed, const Flags& flags, bool chatty) {
  replay = how_to_replay(seed, flags);
  sim::Scenario scenario =
      sim::make_scenario(seed, flags.steps, {codec::from_word(flags.gradients), codec::from_word(flags.weights)});
  scenario.pauses = flags.holds == "steps"   ? modes::Pauses::steps
                    : flags.holds == "marks" ? modes::Pauses::eval_points
                                             : modes::Pauses::never;
  scenario.verify = flags.verify;
  if (flags.rounds > 0) sim::make_rounds(scenario, flags.rounds, flags.overlap);
  if (flags.faulty) sim::add_fault(scenario);
  if (!flags.liar.empty())
    sim::make_liar(scenario,
                   flags.liar == "none"       ? sim::Fault::none
                   : flags.liar == "outdated" ? sim::Fault::outdated
                                              : sim::Fault::negated,
                   flags.liar == "rarely" ? kRarely : 1);
  scenario.run.skewed = flags.skewed;
  sim::SimulationOptions options;
  if (flags.trace) options.print = [](const std::string& line) { std::cout << line << '\n'; };
  if (chatty) std::cout << sim::describe(scenario);
  sim::Report report = sim::simulate(scenario, options);
  if (chatty || !report.ok()) {
    std::printf(
        "%s: %.1f virtual seconds, %llu frames, %llu of deltas, %u starts of the head, slowest step %.2f s, %llu "
        "trims, %llu raises, "
        "loss error %.1e, weights error %.1e, trace %016llx\n",
        report.ok() ? "ok" : "FAILED", report.virtual_seconds, static_cast<unsigned long long>(report.frames),
        static_cast<unsigned long long>(report.deltas), report.incarnations, report.measured.slowest_step_s,
        static_cast<unsigned long long>(report.measured.trims), static_cast<unsigned long long>(report.measured.raises),
        report.measured.loss_error, report.measured.weights_error, static_cast<unsigned long long>(report.trace_hash));
  }
  if (chatty && !flags.liar.empty()) std::cout << about_liar(report) << '\n';
  for (const std::string& failure : report.failures) std::cout << "  " << failure << '\n';
  if (!report.ok() && !chatty) std::cout << replay << std::flush;
  return report;
}

int run_range(const Flags& flags) {
  const std::size_t dots = flags.seeds.find("..");
  std::uint64_t first = 0, last = 0;
  try {
    if (dots == std::string::npos) throw std::invalid_argument("no dots");
    first = std::stoull(flags.seeds.substr(0, dots));
    last = std::stoull(flags.seeds.substr(dots + 2));
  } catch (const std::exception&) {
    std::cerr << "sim: --seeds expects FIRST..LAST, found '" << flags.seeds << "'; try --seeds 1..200\n";
    return 2;
  }
  std::uint64_t failed = 0, trims = 0, raises = 0;
  double slowest = 0, weights_error = 0;
  std::vector<std::uint64_t> liars;
  std::uint64_t out = 0, struck = 0;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const sim::Report report = run_one(seed, flags, false);
    if (!report.ok()) ++failed;
    trims += report.measured.trims;
    raises += report.measured.raises;
    slowest = std::max(slowest, report.measured.slowest_step_s);
    weights_error = std::max(weights_error, report.measured.weights_error);
    liars.push_back(report.liar_steps);
    out += report.liar_out ? 1 : 0;
    struck += report.sound_struck;
  }
  if (!flags.liar.empty()) {
    std::ranges::sort(liars);
    std::printf("liars: %llu out, after %llu steps (median), %llu at the most; %llu strikes of others\n",
                static_cast<unsigned long long>(out), static_cast<unsigned long long>(liars[liars.size() / 2]),
                static_cast<unsigned long long>(liars.back()), static_cast<unsigned long long>(struck));
  }
  std::printf(
      "%llu seeds, %llu failed; %llu leases trimmed, %llu extended; slowest step %.2f s, "
      "largest error of weights %.1e\n",
      static_cast<unsigned long long>(last - first + 1), static_cast<unsigned long long>(failed),
      static_cast<unsigned long long>(trims), static_cast<unsigned long long>(raises), slowest, weights_error);
  return failed == 0 ? 0 : 1;
}

int run_minutes(const Flags& flags) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(flags.minutes * 60);
  std::random_device entropy;  // which seeds are tried is the one thing that is not to be repeatable
  const std::uint64_t base = (std::uint64_t{entropy()} << 20) | 1;
  std::uint64_t tried = 0;
  for (; Clock::now() < end; ++tried) {
    if (!run_one(base + tried, flags, false).ok()) return 1;
  }
  std::cout << tried << " seeds from " << base << " on, none failed\n";
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Runs Motley's coordinator and workers in a simulated world, where machines and networks fail.");
  Flags flags;
  auto* seed = app.add_option("--seed", flags.seed, "replay one seed and print what happened");
  auto* seeds = app.add_option("--seeds", flags.seeds, "run the seeds FIRST..LAST");
  auto* minutes = app.add_option("--minutes", flags.minutes, "run random seeds for so long, until one fails");
  app.add_option("--steps", flags.steps, "steps of the run (the seed says otherwise)");
  auto* rounds = app.add_option("--rounds", flags.rounds, "steps are rounds of so many local steps");
  app.add_flag("--overlap", flags.overlap, "a round begins while what the last one came to travels")->needs(rounds);
  app.add_option("--gradients", flags.gradients, "codec of gradients between machines")
      ->check(CLI::IsMember({"auto", "fp32", "bf16", "int8", "int4"}));
  app.add_option("--weights", flags.weights, "codec of what a step changes of the weights, between machines")
      ->check(CLI::IsMember({"auto", "fp32", "bf16", "int8", "int4"}));
  app.add_option("--holds", flags.holds, "when the run is held, for as long as the seed says")
      ->check(CLI::IsMember({"never", "marks", "steps"}));
  app.add_option("--verify", flags.verify, "part of the time in which shares are computed twice, by two workers");
  app.add_flag("--faulty", flags.faulty,
               "one worker is not as it should be: NaN, other weights, handed-back leases, …");
  app.add_option("--liar", flags.liar, "the last worker lies in its gradients; the head's own, or others, are right")
      ->check(CLI::IsMember({"negated", "outdated", "rarely", "none"}));
  app.add_flag("--skewed", flags.skewed, "each share of a step is of some classes alone");
  app.add_flag("--trace", flags.trace, "print every event with its virtual time");
  seed->excludes(seeds)->excludes(minutes);
  seeds->excludes(minutes);
  app.require_option(1, 0);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  std::signal(SIGABRT, on_abort);
  if (*seeds) return run_range(flags);
  if (*minutes) return run_minutes(flags);
  return run_one(flags.seed, flags, true).ok() ? 0 : 1;
}
