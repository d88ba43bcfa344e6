#include "machine/thread_priority.h"

#include <gtest/gtest.h>

#ifdef __linux__
#include <sys/resource.h>

#include <algorithm>
#include <thread>

namespace motley::machine {
namespace {

int niceness() { return getpriority(PRIO_PROCESS, 0); }

TEST(ThreadPriority, IsOfTheThreadAndThoseItStarts) {
  const int before = niceness();
  int own = 0, inherited = 0, unchanged = 0;
  std::thread([&] {
    be_nice(before + 2);
    be_nice(before + 1);  // never back
    own = niceness();
    std::thread([&] { inherited = niceness(); }).join();
  }).join();
  std::thread([&] { unchanged = niceness(); }).join();
  EXPECT_EQ(own, std::min(19, before + 2));
  EXPECT_EQ(inherited, own);
  EXPECT_EQ(unchanged, before);
  EXPECT_EQ(niceness(), before);
}

}  // namespace
}  // namespace motley::machine
#endif
