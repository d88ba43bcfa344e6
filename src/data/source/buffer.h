#pragma once
// Memory for what a source holds or a format unpacks. Any thread.

#include <cstdint>
#include <string>

#include "motley/bytes.h"
#include "motley/result.h"

namespace motley::data {

/// A buffer of its own, or an error that names what it was for.
Result<MutableBytes> allocate(std::uint64_t size, const std::string& what_for);

}  // namespace motley::data
