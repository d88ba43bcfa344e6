// sim_scale: what a step costs with many workers. Large buffers are sizes alone here: all of them lie over each other,
// and what each machine has taken is counted.
#include <sys/mman.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "base/assert.h"
#include "base/format.h"
#include "sim/scale.h"

namespace {

using namespace motley;

constexpr std::size_t kLargeBytes = std::size_t{64} << 10;
constexpr std::size_t kBuffersMax = std::size_t{1} << 20;
constexpr std::size_t kApart = 4096;  // of which each has its address
constexpr std::size_t kLongest = std::size_t{8} << 20;

struct Buffers {
  std::byte* base = nullptr;
  std::vector<std::size_t> bytes, machine, idle;
  std::vector<std::size_t> live, most;  // bytes, by machine
  std::size_t used = 0, now = 0;

  void begin(std::size_t machines) {
    void* const place = ::mmap(nullptr, kBuffersMax * kApart + kLongest, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    MOTLEY_ASSERT(place != MAP_FAILED);
    bytes.resize(kBuffersMax);
    machine.resize(kBuffersMax);
    live.resize(machines);
    most.resize(machines);
    base = static_cast<std::byte*>(place);
  }
  [[nodiscard]] bool has(const void* block) const {
    const auto* const at = static_cast<const std::byte*>(block);
    return base != nullptr && at >= base && at < base + kBuffersMax * kApart;
  }
  void* take(std::size_t size) {
    std::size_t number = used;
    if (idle.empty()) {
      MOTLEY_ASSERT(++used <= kBuffersMax);
    } else {
      number = idle.back();
      idle.pop_back();
    }
    bytes[number] = size;
    machine[number] = now;
    most[now] = std::max(most[now], live[now] += size);
    return base + number * kApart;
  }
  void give(const void* block) {
    const auto number = static_cast<std::size_t>(static_cast<const std::byte*>(block) - base) / kApart;
    live[machine[number]] -= bytes[number];
    idle.push_back(number);
  }
};

Buffers buffers;  // what stands in for malloc() has no other way to it

}  // namespace

extern "C" {
void* __real_malloc(std::size_t size);   // NOLINT
void __real_free(void* block);           // NOLINT
void* __wrap_malloc(std::size_t size) {  // NOLINT
  const bool large = size >= kLargeBytes && size <= kLongest && buffers.base != nullptr;
  return large ? buffers.take(size) : __real_malloc(size);
}
void __wrap_free(void* block) {  // NOLINT
  buffers.has(block) ? buffers.give(block) : __real_free(block);
}
}

int main(int argc, char** argv) {
  CLI::App app("Says what a step costs with many workers, by the real coordinator and workers on simulated links.");
  sim::ScaleSetup setup;
  double megabits = 1000, compute = 1;
  app.add_option("--workers", setup.workers, "on machines of their own, beside the head's");
  app.add_option("--parameters", setup.parameters, "of the model")->required();
  app.add_option("--rate", megabits, "Mbit/s of each machine's link, in both directions");
  app.add_option("--compute", compute, "seconds that each worker computes in a step");
  app.add_option("--steps", setup.steps, "of which the first one is that of joining");
  CLI11_PARSE(app, argc, argv);
  setup.bytes_per_second = megabits * 1e6 / 8;
  setup.compute = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(compute));
  buffers.begin(setup.workers + 1);
  setup.runs_as = [](std::size_t machine) { buffers.now = machine; };
  const sim::ScaleReport report = sim::run_scaled(setup);
  const double model = 4.0 * static_cast<double>(setup.parameters);
  std::string steps, in, out, news;
  for (std::size_t i = 0; i < report.steps.size(); ++i) {
    const std::string comma = i > 0 ? ", " : "";
    steps += comma + formatted("%.3f", report.steps[i]);
    in += comma + formatted("%.3f", static_cast<double>(report.head[i].in) / model);
    out += comma + formatted("%.3f", static_cast<double>(report.head[i].out) / model);
  }
  for (const std::string& each : report.news) news += (news.empty() ? "\"" : ", \"") + each + "\"";
  const double workers = static_cast<double>(setup.workers);
  const double most_worker = static_cast<double>(*std::max_element(buffers.most.begin() + 1, buffers.most.end()));
  std::cout << "{\"bench\": \"sim-scale\", \"workers\": " << setup.workers << ", \"parameters\": " << setup.parameters
            << ", \"mbit\": " << megabits << ", \"compute_s\": " << compute << ", \"steps\": [" << steps
            << "], \"ring_s\": " << formatted("%.3f", 2 * (workers - 1) / workers * model / setup.bytes_per_second)
            << ", \"in\": [" << in << "], \"out\": [" << out
            << "], \"head_models\": " << formatted("%.2f", static_cast<double>(buffers.most[0]) / model)
            << ", \"worker_models\": " << formatted("%.2f", most_worker / model) << ", \"frames\": " << report.frames
            << ", \"events\": " << report.events << ", \"finished\": " << (report.finished ? "true" : "false")
            << ", \"news\": [" << news << "]}\n";
  return report.finished ? 0 : 1;
}
