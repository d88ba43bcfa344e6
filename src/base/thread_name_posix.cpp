#include "base/thread_name.h"

#include <pthread.h>

namespace motley {

void name_thread(const char* name) noexcept {
#if defined(__APPLE__)
  pthread_setname_np(name);
#else
  pthread_setname_np(pthread_self(), name);
#endif
}

}  // namespace motley
