#pragma once
// Which files of this machine a data.uri stands for. Functions without state; any thread.

#include <functional>
#include <string>
#include <vector>

#include "motley/result.h"

namespace motley::data {

/// "KIND://…": nothing of this machine.
[[nodiscard]] bool is_address(const std::string& uri);

/// A path of this machine with what lies at an address.
using Bring = std::function<Result<std::string>(const std::string& address)>;

/// The data.uri with what `bring` makes of each address in it, text and pairs as they are. Errors: of `bring`.
Result<std::string> without_addresses(const std::string& uri, const Bring& bring);

struct FilesOf {
  bool pair = false;  // images and labels, each by a path of its own
  std::vector<std::string> paths{};
};

/// What opening that part would read; none for data that are known by name or made up. Errors: input, where a directory
/// has no such files.
Result<FilesOf> files_of(const std::string& uri, const std::string& part);

}  // namespace motley::data
