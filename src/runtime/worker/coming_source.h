#pragma once
// A file of a set that comes while it is read. Any thread.

#include <cstddef>
#include <memory>
#include <string>

#include "data/source/source.h"
#include "runtime/worker/arrivals.h"

namespace motley::runtime {

/// The file at `path` has its size already, and the first of its blocks is that one of the set. Errors: as
/// data::open_source().
Result<std::shared_ptr<const data::Source>> open_coming(const std::string& path, std::size_t first_block,
                                                        std::shared_ptr<Arrivals> arrivals);

}  // namespace motley::runtime
