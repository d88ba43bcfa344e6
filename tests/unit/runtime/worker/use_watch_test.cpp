#include "runtime/worker/use_watch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <vector>

namespace motley::runtime {
namespace {

struct Laptop final : machine::MachineUse {
  explicit Laptop(
      std::atomic<bool>& source, std::function<void()> is_read = [] {})
      : unplugged(source), on_read(std::move(is_read)) {}
  machine::UseReading read() override {
    on_read();
    return {.on_battery = unplugged.load()};
  }
  std::atomic<bool>& unplugged;
  std::function<void()> on_read;
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
  std::atomic<bool> unplugged = true;
  int reads = 0;
  std::promise<void> again;
  std::vector<PauseReason> told;
  {
    const auto read = [&] {
      if (++reads == 2) again.set_value();
    };
    const UseWatch watch({.battery_pauses = true}, std::make_unique<Laptop>(unplugged, read),
                         [&](PauseReason reason) { told.push_back(reason); });
    again.get_future().get();
  }  // the second look has ended, too
  EXPECT_EQ(told, std::vector{PauseReason::on_battery});
}

}  // namespace
}  // namespace motley::runtime
