#pragma once
// Whole files as bytes. Functions without state; any thread.

#include <cstdint>
#include <string>

#include "motley/bytes.h"
#include "motley/result.h"

namespace motley::data {

/// A buffer of its own, or an error that names what it was for.
Result<MutableBytes> allocate(std::uint64_t size, const std::string& what_for);

/// Reads a regular file into memory. Errors: input (missing, not a file), io, memory.
Result<SharedBytes> read_file(const std::string& path);

/// Maps a regular file read-only. The file must not be shortened while the bytes are in use.
Result<SharedBytes> map_file(const std::string& path);

}  // namespace motley::data
