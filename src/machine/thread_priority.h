#pragma once
// Lower priority for one thread and those it starts: the person at the machine goes first.

namespace motley::machine {

/// Of the calling thread, to at least this `nice` value (0 to 19). Threads started from it inherit the value on Linux.
/// On macOS anything above 0 is the quality of service "utility": "background" would bind it to the efficiency cores.
/// On Windows it is a priority below normal, from 15 on the lowest, of that thread alone.
void be_nice(int nice);

}  // namespace motley::machine
