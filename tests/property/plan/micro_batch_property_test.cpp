// Devices with a memory of their own: the search must never try what does not fit, and not stop far below what does.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "plan/micro_batch.h"

namespace motley::plan {
namespace {

struct Device {
  std::uint64_t weights, once, per_sample, budget;
  [[nodiscard]] std::uint64_t peak(std::uint64_t samples) const { return weights + once + per_sample * samples; }
};

Device some_device() {
  Device device{};
  device.weights = *rc::gen::inRange<std::uint64_t>(0, 1 << 20);
  device.once = *rc::gen::inRange<std::uint64_t>(0, 1 << 20);
  device.per_sample = *rc::gen::inRange<std::uint64_t>(1, 1 << 16);
  // From what one sample takes upward.
  device.budget = device.peak(1) + *rc::gen::inRange<std::uint64_t>(0, 1 << 24);
  return device;
}

RC_GTEST_PROP(MicroBatchProperty, NothingIsTriedThatDoesNotFit, ()) {
  const Device device = some_device();
  const auto most = *rc::gen::inRange<std::uint32_t>(1, 4096);
  MicroBatch search(most, device.weights, device.budget);
  for (int runs = 0; runs < 40; ++runs) {
    const std::uint32_t samples = search.size();
    RC_ASSERT(samples >= 1U && samples <= most);
    RC_ASSERT(device.peak(samples) <= device.budget);
    search.ran({samples, device.peak(samples), device.budget, 0});
  }
  RC_ASSERT(!search.growing());
}

RC_GTEST_PROP(MicroBatchProperty, StopsWithinAFactorOfFourOfWhatFits, ()) {
  Device device = some_device();
  device.once = 0;
  const auto most = *rc::gen::inRange<std::uint32_t>(1, 4096);
  MicroBatch search(most, device.weights, device.budget);
  while (search.growing()) search.ran({search.size(), device.peak(search.size()), device.budget, 0});
  const std::uint64_t fits = std::min<std::uint64_t>(most, (device.budget - device.weights) / device.per_sample);
  RC_ASSERT(std::uint64_t{search.size()} * 4 > fits);
}

RC_GTEST_PROP(MicroBatchProperty, NeverLargerThanWhatRanOutOfMemory, ()) {
  // The peaks are noisy and the memory smaller than it says: only running out of it tells.
  const Device device = some_device();
  const auto most = *rc::gen::inRange<std::uint32_t>(1, 4096);
  const auto truly = *rc::gen::inRange<std::uint32_t>(1, 4096);
  MicroBatch search(most, device.weights, device.budget);
  std::uint32_t ceiling = most;
  for (int runs = 0; runs < 60; ++runs) {
    const std::uint32_t samples = search.size();
    RC_ASSERT(samples <= ceiling);
    if (samples > truly) {
      ceiling = samples / 2;
      RC_ASSERT(search.out_of_memory() == (samples > 1));
    } else {
      const std::uint64_t noise = *rc::gen::inRange<std::uint64_t>(0, 1 << 12);
      search.ran({samples, device.peak(samples) + noise, device.budget, 0});
    }
  }
}

}  // namespace
}  // namespace motley::plan
