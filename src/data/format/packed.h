#pragma once
// The packed format: one file that is mapped, not parsed; specified in docs/formats/packed.md, written by
// tools/pack.py. Functions without state; any thread.

#include <string>

#include "data/array_dataset.h"
#include "data/source/source.h"
#include "motley/bytes.h"

namespace motley::data {

/// Checks header and checksums. The samples of the result share `bytes`. `name` is for messages.
Result<Parts> parse_packed(const SharedBytes& bytes, const std::string& name);
/// The samples stay where the source has them.
Result<Parts> read_packed(const Source& source);

}  // namespace motley::data
