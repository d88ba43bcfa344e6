#pragma once
// What the system says of the time that processors spent. Any thread.

namespace motley::machine {

/// On this process, so far.
double processor_time_s();
/// On the thread that asks, so far. Windows counts in turns of 15 ms: there it is the time that passes.
double thread_time_s();

}  // namespace motley::machine
