#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "store/possession.h"

namespace motley::store {
namespace {

Possession possession(const struct stat& found) {
  const bool ours = found.st_uid == ::geteuid();
  return {ours, ours || found.st_uid == 0, (found.st_mode & (S_IWGRP | S_IWOTH)) != 0};
}

}  // namespace

Result<Possession> possession_of(const std::filesystem::path& path) {
  struct stat found{};
  if (::lstat(path.c_str(), &found) != 0) return system_error("look at", path, errno);
  return possession(found);
}

Result<Possession> possession_of(const File& file) {
  struct stat found{};
  if (::fstat(file.descriptor(), &found) != 0) return system_error("look at", file.path(), errno);
  return possession(found);
}

std::string how_to_close(const std::filesystem::path& path) { return "chmod 600 " + path.string(); }

}  // namespace motley::store
