#pragma once
// What this machine can spare. Going over it does not fail: pages are given out and the process is killed when it
// touches them, so large allocations ask first. Thread-safe.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "motley/result.h"

namespace motley::machine {

/// Bytes that may be touched in addition without swapping and without being killed: what the system calls available,
/// less by every memory limit of the process's control groups (version 1 and 2) and by its own limits (RLIMIT_AS,
/// RLIMIT_DATA). Empty where the system does not tell. `root` is where /proc and /sys are looked for.
std::optional<std::uint64_t> spare_memory_bytes(const std::filesystem::path& root = "/");

/// What of that may be planned with: a margin is left for allocations that nobody counts, small ones, stacks, code that
/// is read in.
std::optional<std::uint64_t> usable_memory_bytes();

/// What libraries of matrix products take beside what they are asked for: buffers of each thread's own, into which they
/// pack, and which they keep. Measured 42 MB on two threads for a small transformer with MKL.
constexpr std::uint64_t scratch_bytes(unsigned threads) noexcept { return threads * (std::uint64_t{24} << 20); }

/// "12.5 MiB"
std::string mebibytes(std::uint64_t bytes);

/// ErrorCode::memory where the machine cannot spare `bytes` and a margin; `what_for` begins the message.
Status check_memory_for(std::uint64_t bytes, const std::string& what_for, const std::string& hint);

}  // namespace motley::machine
