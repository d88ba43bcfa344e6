#pragma once
// The processors and the memory of this machine, for whoever lists its devices. Thread-safe.

#include <cstdint>
#include <filesystem>
#include <string>

namespace motley::machine {

/// "AMD EPYC 7763"; "processor" where the system does not tell.
std::string processor_name();

/// All that is built in; 0 where the system does not tell.
std::uint64_t memory_bytes() noexcept;

/// That this process may run on; at least 1.
unsigned allowed_processors() noexcept;

/// How many of them it may keep busy. With a quota of the system (a container's, a control group's) a part of one
/// counts: 0.7, 2.5. At least 0.01. `root`: of the file system; tests have one of their own.
double usable_processors(const std::filesystem::path& root = "/");

}  // namespace motley::machine
