// What Windows says of this machine and of this process.

#include <windows.h>

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "machine/machine_use.h"
#include "machine/process_memory.h"
#include "machine/spare_memory.h"
#include "machine/thread_priority.h"

namespace motley::machine {
namespace {

TEST(WindowsMachine, ToldOfItsMemory) {
  const auto spare = spare_memory_bytes();
  ASSERT_TRUE(spare);
  EXPECT_GT(*spare, std::uint64_t{1} << 20);
}

TEST(WindowsMachine, CountsWhatThisProcessTakes) {
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  const ProcessMemory before = process_memory();
  const std::vector<char> taken(kBytes, 1);
  const ProcessMemory with = process_memory();
  EXPECT_GE(with.used, before.used + kBytes / 2);
  EXPECT_GE(with.peak, with.used);
  EXPECT_GT(with.budget, with.used);
  EXPECT_EQ(taken.back(), 1);
}

TEST(WindowsMachine, OneThreadIsNiceAndNoOther) {
  std::thread([] {
    be_nice(0);
    EXPECT_EQ(::GetThreadPriority(::GetCurrentThread()), THREAD_PRIORITY_NORMAL);
    be_nice(10);
    EXPECT_EQ(::GetThreadPriority(::GetCurrentThread()), THREAD_PRIORITY_BELOW_NORMAL);
    be_nice(19);
    EXPECT_EQ(::GetThreadPriority(::GetCurrentThread()), THREAD_PRIORITY_LOWEST);
  }).join();
  EXPECT_EQ(::GetThreadPriority(::GetCurrentThread()), THREAD_PRIORITY_NORMAL);
}

TEST(WindowsMachine, IsAskedForItsUse) {
  const auto use = make_machine_use();
  EXPECT_FALSE(use->read().others_load) << "there is no reading before the first";
  const auto idle = use->read().input_idle_s;
  if (idle) EXPECT_GE(*idle, 0);
}

}  // namespace
}  // namespace motley::machine
