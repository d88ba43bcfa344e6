#pragma once
// The files that data.uri and data.test_uri of a run stand for, as what machines that join get: one set, in which those
// of the one lie below train/, those of the other below test/, images and labels that have paths of their own below
// images/ and labels/ there. Functions without state.

#include <memory>
#include <string>

#include "motley/result.h"
#include "runtime/head/block_desk.h"

namespace motley::runtime {

inline constexpr const char* kDataSet = "data";  // the name of the set

/// Null where there is no such file. Reads all of them. Errors: input, where one has a name that some system cannot
/// have; io.
Result<std::shared_ptr<Offers>> offer_data(const std::string& train, const std::string& test);

}  // namespace motley::runtime
