#include "machine/process_memory.h"

#include <gtest/gtest.h>

#ifdef __linux__

#include <sys/mman.h>
#include <sys/resource.h>

#include <cstddef>
#include <cstring>

namespace motley::machine {
namespace {

constexpr std::size_t kMebibyte = 1 << 20;

void* map(std::size_t bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return data == MAP_FAILED ? nullptr : data;
}

rlim_t limit_now() {
  rlimit limit{};
  EXPECT_EQ(getrlimit(RLIMIT_DATA, &limit), 0);
  return limit.rlim_cur;
}

TEST(ProcessMemory, APeakIsTheMostSinceItWasAsked) {
  const ProcessMemory quiet = process_memory();
  void* data = map(64 * kMebibyte);
  ASSERT_NE(data, nullptr);
  std::memset(data, 1, 64 * kMebibyte);
  const ProcessMemory full = process_memory();
  EXPECT_GE(full.used, quiet.used + 60 * kMebibyte);
  munmap(data, 64 * kMebibyte);
  const ProcessMemory after = process_memory();
  EXPECT_GE(after.peak, quiet.used + 60 * kMebibyte);
  EXPECT_LT(after.used, quiet.used + 30 * kMebibyte);
  EXPECT_LT(process_memory().peak, quiet.used + 30 * kMebibyte);
}

TEST(ProcessMemory, BeyondTheLimitAnAllocationFails) {
  const ProcessMemory now = process_memory();
  ASSERT_GT(now.budget, now.used);
  const std::size_t more = now.budget - now.used + 256 * kMebibyte;
  {
    const ProcessMemoryLimit limit;
    EXPECT_EQ(map(more), nullptr);
  }
  void* data = map(more);  // untouched
  EXPECT_NE(data, nullptr);
  munmap(data, more);
}

TEST(ProcessMemory, TheLimitIsThereAsLongAsAnybodyHoldsIt) {
  const rlim_t before = limit_now();
  {
    const ProcessMemoryLimit first;
    const rlim_t limited = limit_now();
    EXPECT_LT(limited, before);
    {
      const ProcessMemoryLimit second;
    }
    EXPECT_EQ(limit_now(), limited);
  }
  EXPECT_EQ(limit_now(), before);
}

}  // namespace
}  // namespace motley::machine

#endif
