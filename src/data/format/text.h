#pragma once
// Bytes of any kind as a data set for language models: windows of `block` bytes, each with the byte that follows as
// its target. Functions without state; any thread.

#include <memory>
#include <string>

#include "data/dataset.h"
#include "data/source/source.h"

namespace motley::data {

/// Windows start at multiples of options.block. With options.hold_out, "train" has the first 90 % of them and "test"
/// the rest; otherwise each part has them all. Errors: input (too short), and those of the source.
Result<std::shared_ptr<const Dataset>> read_text(const Source& source, const std::string& part,
                                                 const OpenOptions& options);

}  // namespace motley::data
