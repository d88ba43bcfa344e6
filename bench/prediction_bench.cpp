// How well the next pass is predicted from those before it: series of passes of a device (TimeModel) and of waits
// (Exposure), root mean square error against the time without noise, in percent of the pass. Prints one JSON object.
//   prediction_bench [SEEDS]

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "base/philox.h"
#include "plan/exposed_comm.h"
#include "plan/time_model.h"

namespace {

using namespace motley::plan;
using motley::Philox;

constexpr double kFixed = 0.1, kPerSample = 0.004, kSamples = 100;  // half a second
constexpr double kComputed = 5.0 / 6, kWait = 1.0 / 6;              // a pass of a second

struct Errors {
  double squares = 0;
  int count = 0;
  void add(double predicted, double truth, double whole) {
    squares += std::pow((predicted - truth) / whole, 2);
    ++count;
  }
};

struct Series {
  const char* name;
  int passes, from;                                                               // errors count from that pass on
  double noise;                                                                   // of a time, as a part of it
  double vary = 0.2;                                                              // shares differ by up to this part
  std::function<double(int, Philox&)> factor = [](int, Philox&) { return 1.0; };  // times as long as usual
  std::function<double(int)> share = [](int) { return 1.0; };
  std::function<double(double, Philox&)> noisy = [](double deviation, Philox& random) {
    return std::max(0.05, 1 + deviation * random.gaussian());
  };
  bool calibrated = false;
};

double symmetric(Philox& random) { return 2 * random.uniform() - 1; }

double heavy(double scale, Philox& random) {
  double squares = 0;
  for (int i = 0; i < 3; ++i) squares += std::pow(random.gaussian(), 2);
  return std::max(0.05, 1 + scale * random.gaussian() / std::sqrt(squares / 3));
}

Errors device(const Series& series, std::uint64_t seed) {
  Philox random(seed);
  TimeModel model;
  Errors errors;
  if (series.calibrated) {
    for (const std::uint64_t samples : {800U, 200U}) {
      const double truth = kFixed + kPerSample * static_cast<double>(samples) / 10;
      model.record(samples, truth * series.noisy(series.noise, random));
    }
  }
  for (int pass = 0; pass < series.passes; ++pass) {
    const double part = series.share(pass) * (1 + series.vary * symmetric(random));
    const auto samples = static_cast<std::uint64_t>(std::max(1.0, std::round(10 * kSamples * part)));
    const double factor = series.factor(pass, random);
    const double usual = kFixed + kPerSample * static_cast<double>(samples) / 10;
    // A factor beyond four is a hiccup: nobody can predict it.
    const double truth = factor > 4 ? usual : factor * usual;
    if (pass >= series.from && model.affine())
      errors.add(model.affine()->seconds(static_cast<double>(samples)), truth, truth);
    model.record(samples, usual * factor * series.noisy(series.noise, random));
  }
  return errors;
}

Errors wire(const Series& series, double usual, std::uint64_t seed) {
  Philox random(seed);
  ExposedComm exposed_comm;
  Errors errors;
  double wandered = 1;
  for (int pass = 0; pass < series.passes; ++pass) {
    const double factor = series.factor(pass, random);
    if (series.vary > 0) wandered *= std::exp(series.vary * random.gaussian());
    const double truth = (factor > 15 ? 1 : factor) * wandered * usual;
    if (pass >= series.from) errors.add(exposed_comm.believed(), truth, kComputed + truth);
    exposed_comm.pass(kComputed + factor * wandered * usual * series.noisy(series.noise, random), kComputed);
  }
  return errors;
}

const auto kStep = [](int at, double factor) { return [=](int pass, Philox&) { return pass < at ? 1.0 : factor; }; };
const auto kHiccups = [](double times) {
  return [=](int pass, Philox& random) { return random.uniform() < 0.02 && pass > 8 ? times : 1.0; };
};

std::vector<Series> devices() {
  const auto ramp = [](int passes, double more) {
    return [=](int pass, Philox&) { return 1 + more * std::clamp((pass - 100.0) / passes, 0.0, 1.0); };
  };
  const auto wave = [](int pass, Philox&) { return 1 + 0.05 * std::sin(2 * 3.14159265 * pass / 100); };
  const auto cold = [](int pass, Philox&) { return pass > 2 ? 1.0 : pass == 0 ? 1.5 : pass == 1 ? 1.3 : 1.2; };
  const auto half_share = [](int at) { return [=](int pass) { return pass < at ? 1.0 : 0.5; }; };
  const auto growing = [](int pass) { return pass < 40 ? 0.5 + pass * 0.0125 : pass < 80 ? 1.0 : 0.5; };
  const auto warming = [](int pass, Philox&) { return 1.3 - 0.3 * std::min(1.0, pass / 40.0); };
  return {
      {"noise 5 %, shares vary by 20 %", 300, 50, 0.05},
      {"noise 5 %, shares vary by 0.5 %", 300, 50, 0.05, 0.005},
      {"noise 1 %, shares vary by 20 %", 300, 50, 0.01},
      {"passes 2 to 10, noise 5 %", 11, 2, 0.05},
      {"slower by a tenth within 1,000, noise 5 %", 1100, 100, 0.05, 0.2, ramp(1000, 0.1)},
      {"slower by a fifth within 100, noise 5 %", 200, 100, 0.05, 0.2, ramp(100, 0.2)},
      {"slower by a fifth within 100, noise 1 %", 200, 100, 0.01, 0.2, ramp(100, 0.2)},
      {"a wave of 5 % within 100 passes, noise 2 %", 400, 100, 0.02, 0.2, wave},
      {"half the speed at once, noise 5 %", 131, 102, 0.05, 0.2, kStep(100, 2)},
      {"twice the speed at once, noise 5 %", 131, 102, 0.05, 0.2, kStep(100, 0.5)},
      {"half the speed at once, noise 1 %", 131, 102, 0.01, 0.2, kStep(100, 2)},
      {"slower by 12 % at once, noise 5 %", 131, 102, 0.05, 0.2, kStep(100, 1.12)},
      {"2 % take ten times as long, noise 5 %", 400, 50, 0.05, 0.2, kHiccups(10)},
      {"Student's t of 3, 4 %", 300, 50, 0.04, 0.2, [](int, Philox&) { return 1.0; }, [](int) { return 1.0; }, heavy},
      {"first three 1.5, 1.3, 1.2 times as long: passes 4 to 20", 20, 3, 0.05, 0.2, cold},
      {"half the share at once, not calibrated", 70, 50, 0.05, 0.02, kStep(0, 1), half_share(50)},
      {"half the share at once, calibrated", 70, 50, 0.05, 0.02, kStep(0, 1), half_share(50), Series{}.noisy, true},
      {"half the share and half the speed since, calibrated", 80, 60, 0.05, 0.02, kStep(40, 2), half_share(60),
       Series{}.noisy, true},
      {"warms up while its share grows", 80, 5, 0.03, 0.02, warming, growing},
      {"warmed up, then half the share", 100, 80, 0.03, 0.02, warming, growing},
  };
}

std::vector<Series> wires() {
  const auto first = [](int pass, Philox&) { return pass > 2 ? 1.0 : pass == 0 ? 8.0 : pass == 1 ? 3.0 : 1.5; };
  return {
      {"wire, noise 5 %", 300, 50, 0.05, 0},
      {"wire, noise 20 %", 300, 50, 0.2, 0},
      {"wire, noise 50 %", 300, 50, 0.5, 0},
      {"wire 1.5 times as long at once: passes 2 to 15", 116, 102, 0.2, 0, kStep(100, 1.5)},
      {"wire 4 times as long at once: passes 2 to 15", 116, 102, 0.2, 0, kStep(100, 4)},
      {"wire a quarter at once: passes 2 to 15", 116, 102, 0.2, 0, kStep(100, 0.25)},
      {"wire wanders by 5 % a pass, noise 20 %", 300, 50, 0.2, 0.05},
      {"wire waits 20 times as long in 2 % of passes", 400, 50, 0.2, 0, kHiccups(20)},
      {"wire, first 8, 3, 1.5 times as long: passes 3 to 12", 12, 2, 0.2, 0, first},
  };
}

template <class Run>
double root_mean_square(std::uint64_t seeds, Run&& run) {
  Errors all;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const Errors errors = run(seed);
    all.squares += errors.squares;
    all.count += errors.count;
  }
  return 100 * std::sqrt(all.squares / std::max(1, all.count));
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t seeds = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 200;
  if (seeds == 0) {
    std::fprintf(stderr, "prediction_bench: expected a number of seeds, found '%s'\n", argv[1]);
    return 2;
  }
  std::printf("{\"bench\": \"prediction\", \"seeds\": %llu, \"percent\": {", static_cast<unsigned long long>(seeds));
  const char* separator = "";
  const auto print = [&](const char* name, double percent) {
    std::printf("%s\n  \"%s\": %.2f", separator, name, percent);
    separator = ",";
  };
  for (const Series& each : devices())
    print(each.name, root_mean_square(seeds, [&](std::uint64_t seed) { return device(each, seed); }));
  for (const Series& each : wires())
    print(each.name, root_mean_square(seeds, [&](std::uint64_t seed) { return wire(each, kWait, seed); }));
  Series small{"wire, a hundredth of a pass, noise 20 %", 300, 50, 0.2, 0};
  print(small.name, root_mean_square(seeds, [&](std::uint64_t seed) { return wire(small, 0.01, seed); }));
  std::printf("}}\n");
  return 0;
}
