#pragma once
// The processors and the memory of this machine, for whoever lists its devices. Thread-safe.

#include <cstdint>
#include <string>

namespace motley::machine {

/// "AMD EPYC 7763"; "processor" where the system does not tell.
std::string processor_name();

/// All that is built in; 0 where the system does not tell.
std::uint64_t memory_bytes() noexcept;

/// That this process may use; at least 1.
unsigned usable_processors() noexcept;

}  // namespace motley::machine
