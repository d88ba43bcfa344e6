#include "base/thread_name.h"

namespace motley {

void name_thread(const char*) noexcept {}  // SetThreadDescription is younger than the Windows that the package supports

}  // namespace motley
