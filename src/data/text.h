#pragma once
// A file of any kind as a data set for language models: windows of `block` bytes, each with the byte that follows as
// its target. Functions without state; any thread.

#include <memory>
#include <string>

#include "data/dataset.h"

namespace motley::data {

/// "text:PATH", or a path that ends in .txt.
[[nodiscard]] bool names_text(const std::string& uri);

/// Both name one and the same file of text.
[[nodiscard]] bool same_text(const std::string& a, const std::string& b);

/// Windows start at multiples of options.block. With options.hold_out, "train" has the first 90 % of them and "test"
/// the rest; otherwise each part has them all. Errors: input (missing, a directory, too short), io, memory.
Result<std::shared_ptr<const Dataset>> open_text(const std::string& uri, const std::string& part,
                                                 const OpenOptions& options);

}  // namespace motley::data
