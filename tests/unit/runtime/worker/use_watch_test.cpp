#include "runtime/worker/use_watch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <vector>

namespace motley::runtime {
namespace {

struct Laptop final : machine::MachineUse {
  explicit Laptop(std::atomic<bool>& source) : unplugged(source) {}
  machine::UseReading read() override { return {.on_battery = unplugged.load()}; }
  std::atomic<bool>& unplugged;
};

TEST(UseWatch, TellsAPauseBeforeAnythingStartsAndChangesAfterwards) {
  std::atomic<bool> unplugged = true;
  std::vector<PauseReason> told;
  std::promise<void> resumed;
  UseWatch watch({.battery_pauses = true}, std::make_unique<Laptop>(unplugged), [&](PauseReason reason) {
    told.push_back(reason);
    if (reason == PauseReason::none) resumed.set_value();
  });
  ASSERT_EQ(told, std::vector{PauseReason::on_battery});
  unplugged = false;
  resumed.get_future().get();
  EXPECT_EQ(told.size(), 2U);
}

TEST(UseWatch, SaysNothingWhileNothingChanges) {
  std::atomic<bool> unplugged = false;
  const UseWatch watch({.battery_pauses = true}, std::make_unique<Laptop>(unplugged),
                       [](PauseReason) { ADD_FAILURE(); });
}

}  // namespace
}  // namespace motley::runtime
