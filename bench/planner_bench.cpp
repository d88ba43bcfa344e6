// How long a plan takes: 8 and 64 devices of random speeds, with a shared link. Prints one JSON object.
//   planner_bench [PLANS]

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/philox.h"
#include "plan/planner.h"

namespace {

using namespace motley::plan;
using Clock = std::chrono::steady_clock;

struct Times {
  double median_us = 0, p99_us = 0;
};

Times measure(std::size_t devices, std::size_t plans) {
  motley::Philox random(devices);
  const auto draw = [&](double low, double high) { return low + (high - low) * random.uniform(); };
  std::vector<double> micros;
  std::uint64_t given = 0;
  for (std::size_t i = 0; i < plans; ++i) {
    std::vector<Candidate> candidates(devices);
    for (Candidate& each : candidates) {
      each.time = Affine{draw(0, 0.05), draw(1e-5, 1e-3)};
      each.remote = draw(0, 1) < 0.8;
      each.wait = draw(0, 0.02);
    }
    const Request request{.total = 4096, .grain = 8, .link_seconds = draw(0, 0.02)};
    const auto began = Clock::now();
    const Plan plan = make_plan(request, candidates);
    micros.push_back(std::chrono::duration<double, std::micro>(Clock::now() - began).count());
    for (const std::uint64_t count : plan.counts) given += count;
  }
  if (given != 4096 * plans) std::abort();
  std::sort(micros.begin(), micros.end());
  return {micros[plans / 2], micros[plans * 99 / 100]};
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t plans = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 20'000;
  if (plans == 0) {
    std::fprintf(stderr, "planner_bench: expected a number of plans, found '%s'\n", argv[1]);
    return 2;
  }
  const Times eight = measure(8, plans);
  const Times many = measure(64, plans);
  std::printf(R"({"bench": "planner", "plans": %zu, "devices_8": {"median_us": %.2f, "p99_us": %.2f}, )"
              R"("devices_64": {"median_us": %.2f, "p99_us": %.2f}})"
              "\n",
              plans, eight.median_us, eight.p99_us, many.median_us, many.p99_us);
  return 0;
}
