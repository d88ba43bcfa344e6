#pragma once
// Which files of this machine the head of a run may have opened: it names them in the run's configuration, and what is
// read of them goes back to it in numbers. Functions without state; any thread.

#include <string>
#include <vector>

#include "config/config.h"
#include "motley/result.h"

namespace motley::runtime {

/// What this machine's user gave on the command line.
struct OfferedData {
  std::vector<std::string> directories{};  // whatever lies below them
  std::vector<std::string> overrides{};    // "data.uri=…": the user's own words, whatever they name
};

/// What that key names may be opened here: it is no file, the user's own words, or below a directory that was offered
/// and there.
bool is_own(const std::string& key, const std::string& uri, const OfferedData& offered);

/// Errors: input, where the configuration names a file that was not offered. Nothing is opened, and whether the file
/// exists makes no difference.
Status check_offered(const config::RunConfig& config, const OfferedData& offered);

}  // namespace motley::runtime
