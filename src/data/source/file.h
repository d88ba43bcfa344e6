#pragma once
// A file of this machine as a source. Any thread.

#include <memory>
#include <string>

#include "data/source/source.h"

namespace motley::data {

/// A regular file. Its view is mapped: the file must not be shortened while those bytes are in use. Errors: input
/// (missing, not a file), io.
Result<std::shared_ptr<const Source>> open_file(const std::string& path);

}  // namespace motley::data
