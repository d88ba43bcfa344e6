#include "machine/thread_priority.h"

#if defined(__APPLE__)
#include <pthread.h>
#include <pthread/qos.h>
#elif defined(__linux__)
#include <sys/resource.h>

#include <cerrno>
#elif defined(_WIN32)
#include <windows.h>
#endif

namespace motley::machine {

#if defined(__APPLE__)

void be_nice(int nice) {
  if (nice > 0) pthread_set_qos_class_self_np(QOS_CLASS_UTILITY, 0);
}

#elif defined(__linux__)

// Against POSIX, the niceness of "this process" is that of the calling thread.
void be_nice(int nice) {
  errno = 0;
  const int current = getpriority(PRIO_PROCESS, 0);
  if (errno == 0 && nice > current) setpriority(PRIO_PROCESS, 0, nice);
}

#elif defined(_WIN32)

// Not "background", which would throttle reading files as well. Threads that are started later do not inherit it.
void be_nice(int nice) {
  if (nice > 0)
    ::SetThreadPriority(::GetCurrentThread(), nice < 15 ? THREAD_PRIORITY_BELOW_NORMAL : THREAD_PRIORITY_LOWEST);
}

#else

void be_nice(int) {}

#endif

}  // namespace motley::machine
