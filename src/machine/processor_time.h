#pragma once
// What the system says of the time that processors spent. Any thread.

namespace motley::machine {

/// On this process, so far.
double processor_time_s();
/// On the thread that asks, so far.
double thread_processor_time_s();

}  // namespace motley::machine
