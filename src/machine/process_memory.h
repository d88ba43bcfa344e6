#pragma once
// What this process takes of the machine's memory, for whoever computes with a library whose allocations nobody can
// count. And a limit: an allocation beyond what the machine can spare fails, where the system would kill the process
// later. Thread-safe.

#include <cstdint>

namespace motley::machine {

/// In bytes, of all that the process has.
struct ProcessMemory {
  std::uint64_t used = 0;
  std::uint64_t peak = 0;    // the most since the last time it was asked
  std::uint64_t budget = 0;  // what it may have in all, now; 0: nobody knows
};

ProcessMemory process_memory();

/// As long as there is one, the process can take no more than the machine could spare when the first was made. Threads
/// that are started meanwhile need room for their whole stacks. Linux alone: elsewhere the process would swap.
class ProcessMemoryLimit {
 public:
  ProcessMemoryLimit();
  ~ProcessMemoryLimit();
  ProcessMemoryLimit(const ProcessMemoryLimit&) = delete;
  ProcessMemoryLimit& operator=(const ProcessMemoryLimit&) = delete;
};

}  // namespace motley::machine
