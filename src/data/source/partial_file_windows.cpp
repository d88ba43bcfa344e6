#include <windows.h>

#include <fcntl.h>
#include <io.h>
#include <share.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "base/windows_errors.h"
#include "data/source/partial_file.h"

namespace motley::data {
namespace {

constexpr std::size_t kWriteBytesMax = std::size_t{1} << 30;
constexpr unsigned kNamesMax = 1000;  // of downloads that were cut short at the same moment

}  // namespace

PartialFile::PartialFile(const std::string& final_path) {
  for (unsigned i = 0; i < kNamesMax && fd_ < 0; ++i) {
    path_ = final_path + ".part-" + std::to_string(::GetCurrentProcessId()) + "-" + std::to_string(i);
    error_ = ::_wsopen_s(&fd_, std::filesystem::path(path_).c_str(),
                         _O_RDWR | _O_CREAT | _O_EXCL | _O_BINARY | _O_NOINHERIT, _SH_DENYNO, _S_IREAD | _S_IWRITE);
    made_ = error_ == 0;
    if (error_ != 0 && error_ != EEXIST) return;
  }
}

// What is open is not renamed and not deleted here.
PartialFile::~PartialFile() {
  if (fd_ >= 0) ::_close(fd_);
  if (made_ && !kept_) ::DeleteFileW(std::filesystem::path(path_).c_str());
}

bool PartialFile::write(std::span<const std::byte> bytes) noexcept {
  while (!bytes.empty()) {
    const int wrote = ::_write(fd_, bytes.data(), static_cast<unsigned>(std::min(bytes.size(), kWriteBytesMax)));
    if (wrote < 0) {
      error_ = errno;
      return false;
    }
    bytes = bytes.subspan(static_cast<std::size_t>(wrote));
  }
  return true;
}

bool PartialFile::keep_as(const std::string& final_path) noexcept {
  if (::_commit(fd_) != 0 || ::_close(std::exchange(fd_, -1)) != 0) {
    error_ = errno;
    return false;
  }
  kept_ = ::MoveFileExW(std::filesystem::path(path_).c_str(), std::filesystem::path(final_path).c_str(),
                        MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH) != 0;
  if (!kept_) error_ = errno_of_windows(::GetLastError());
  return kept_;
}

bool PartialFile::is_full(int error) noexcept { return error == ENOSPC; }

}  // namespace motley::data
