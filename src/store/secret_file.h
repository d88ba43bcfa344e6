#pragma once
// Files whose content is a secret, such as a join token: only their owner can read them, and nobody else can have put
// them where they are read. Blocking; any thread.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "motley/result.h"

namespace motley::store {

/// Replaces `path` as one step by a file with mode 0600. Errors: io (there is something there that is no file or
/// somebody else's; the system refuses), disk_full.
Status write_secret_file(const std::filesystem::path& path, std::string_view content);
/// Adds a line to what is there, in one piece, so that others may do so at the same time; makes the file where there is
/// none. Errors: as above, and input where the file would have more than `bytes_max`.
Status append_secret_line(const std::filesystem::path& path, std::string_view line, std::uint64_t bytes_max);
/// Errors: input (not there, no file, longer than `bytes_max`, somebody else's, or others may write to it).
Result<std::string> read_secret_file(const std::filesystem::path& path, std::uint64_t bytes_max);

}  // namespace motley::store
