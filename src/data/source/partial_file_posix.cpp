#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "data/source/partial_file.h"

namespace motley::data {

PartialFile::PartialFile(const std::string& final_path) : path_(final_path + ".part-XXXXXX") {
  fd_ = ::mkstemp(path_.data());
  error_ = fd_ < 0 ? errno : 0;
  made_ = fd_ >= 0;
}

PartialFile::~PartialFile() {
  if (fd_ >= 0) ::close(fd_);
  if (made_ && !kept_) ::unlink(path_.c_str());
}

bool PartialFile::write(std::span<const std::byte> bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(fd_, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      error_ = errno;
      return false;
    }
    bytes = bytes.subspan(static_cast<std::size_t>(wrote));
  }
  return true;
}

bool PartialFile::keep_as(const std::string& final_path) noexcept {
  kept_ = ::fchmod(fd_, 0644) == 0 && ::fsync(fd_) == 0 && ::rename(path_.c_str(), final_path.c_str()) == 0;
  if (!kept_) error_ = errno;
  return kept_;
}

bool PartialFile::is_full(int error) noexcept { return error == ENOSPC || error == EDQUOT; }

}  // namespace motley::data
