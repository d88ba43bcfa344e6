#pragma once
// Whose a file is. Internal to store/. Blocking; any thread.

#include <filesystem>
#include <string>

#include "motley/result.h"
#include "store/file.h"

namespace motley::store {

struct Possession {
  bool ours = false;          // of whoever runs this process
  bool trusted = false;       // that, or the system's administrator's, who may do anything anyway
  bool others_write = false;  // somebody else may
};

/// Of what is at `path` itself, not of where a link leads.
Result<Possession> possession_of(const std::filesystem::path& path);
Result<Possession> possession_of(const File& file);
/// What people enter so that nobody else may write to it.
std::string how_to_close(const std::filesystem::path& path);

}  // namespace motley::store
