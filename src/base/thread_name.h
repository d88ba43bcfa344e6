#pragma once
// Names of threads, for debuggers, profilers and lists of processes. At most 15 letters: Linux keeps no more.

namespace motley {

/// Of the calling thread.
void name_thread(const char* name) noexcept;

}  // namespace motley
