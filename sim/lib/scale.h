#pragma once
// What many workers cost: the real coordinator and the real workers, whose payloads may be sizes alone, on links that
// are shared. Nothing is computed and nothing fails. One thread.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/shared_links.h"

namespace motley::sim {

struct ScaleSetup {
  std::size_t workers = 8;
  std::uint64_t parameters = 0;
  double bytes_per_second = 0;  // of each machine's link, in both directions
  Duration delay = std::chrono::microseconds(100);
  Duration compute = std::chrono::seconds(1);  // of a step, on each worker
  std::uint64_t steps = 4;
  /// From now on machine 0, the head, or a worker's takes memory.
  std::function<void(std::size_t machine)> runs_as{};
};

struct ScaleReport {
  std::vector<double> steps{};               // seconds, from one closing to the next; the first one with joining
  std::vector<SharedLinks::Carried> head{};  // bytes at the head's link, likewise
  std::vector<std::string> news{};           // whatever did not go as it should
  std::uint64_t frames = 0, events = 0;
  bool finished = false;
};

ScaleReport run_scaled(const ScaleSetup& setup);

}  // namespace motley::sim
