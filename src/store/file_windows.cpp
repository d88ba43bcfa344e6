#include <windows.h>

#include <fcntl.h>
#include <io.h>
#include <sddl.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "base/windows_errors.h"
#include "store/file.h"
#include "store/windows_security.h"

namespace motley::store {
namespace {

constexpr DWORD kBytesMax = DWORD{1} << 30;  // of one call
// As on other systems: who has a file open keeps nobody from renaming it, replacing it or deleting it.
constexpr DWORD kShare = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
// Far behind what is in a file: what is locked can be read by nobody else.
constexpr DWORD kLockedByte = 0x7FFFFFFF;

HANDLE handle_of(int descriptor) { return reinterpret_cast<HANDLE>(::_get_osfhandle(descriptor)); }

Error last_error(std::string_view what, const std::filesystem::path& path, std::uint64_t bytes = 0) {
  return system_error(what, path, errno_of_windows(::GetLastError()), bytes);
}

/// For the user who runs this process, and for the system.
class OnlyOwner {
 public:
  OnlyOwner() {
    const std::wstring sid = user_sid();
    const std::wstring text = L"D:P(A;;FA;;;" + (sid.empty() ? L"OW" : sid) + L")(A;;FA;;;SY)";
    if (::ConvertStringSecurityDescriptorToSecurityDescriptorW(text.c_str(), SDDL_REVISION_1, &descriptor_, nullptr) ==
        0)
      descriptor_ = nullptr;
    attributes_ = {sizeof attributes_, descriptor_, FALSE};
  }
  ~OnlyOwner() { ::LocalFree(descriptor_); }
  OnlyOwner(const OnlyOwner&) = delete;
  OnlyOwner& operator=(const OnlyOwner&) = delete;
  [[nodiscard]] bool known() const noexcept { return descriptor_ != nullptr; }
  SECURITY_ATTRIBUTES* attributes() noexcept { return &attributes_; }

 private:
  PSECURITY_DESCRIPTOR descriptor_ = nullptr;
  SECURITY_ATTRIBUTES attributes_{};
};

struct How {
  DWORD access = 0, creation = 0, flags = FILE_ATTRIBUTE_NORMAL;
  bool secret = false;
};

How how_to_open(File::Mode mode) {
  switch (mode) {
    case File::Mode::append:
      return {GENERIC_READ | GENERIC_WRITE, OPEN_ALWAYS};
    case File::Mode::create:
      return {GENERIC_READ | GENERIC_WRITE, CREATE_ALWAYS};
    case File::Mode::create_secret:
      return {GENERIC_READ | GENERIC_WRITE, CREATE_NEW, FILE_ATTRIBUTE_NORMAL, true};
    case File::Mode::append_secret:
      return {GENERIC_READ | GENERIC_WRITE, OPEN_ALWAYS, FILE_ATTRIBUTE_NORMAL | FILE_FLAG_OPEN_REPARSE_POINT, true};
    case File::Mode::read:
      break;
  }
  return {GENERIC_READ, OPEN_EXISTING};
}

}  // namespace

long this_process() noexcept { return static_cast<long>(::GetCurrentProcessId()); }

Result<File> File::open(const std::filesystem::path& path, Mode mode) {
  const char* const doing = mode == Mode::read ? "open" : "create";
  const How how = how_to_open(mode);
  OnlyOwner only_owner;
  if (how.secret && !only_owner.known()) return last_error(doing, path);
  const HANDLE handle = ::CreateFileW(path.c_str(), how.access, kShare, how.secret ? only_owner.attributes() : nullptr,
                                      how.creation, how.flags, nullptr);
  if (handle == INVALID_HANDLE_VALUE) return last_error(doing, path);
  FILE_ATTRIBUTE_TAG_INFO about{};
  if (mode == Mode::append_secret &&
      (::GetFileInformationByHandleEx(handle, FileAttributeTagInfo, &about, sizeof about) == 0 ||
       (about.FileAttributes & FILE_ATTRIBUTE_REPARSE_POINT) != 0)) {
    ::CloseHandle(handle);
    return system_error(doing, path, ELOOP);
  }
  const bool appends = mode == Mode::append || mode == Mode::append_secret;
  File file;
  file.descriptor_ = ::_open_osfhandle(reinterpret_cast<intptr_t>(handle), appends ? _O_APPEND | _O_BINARY : _O_BINARY);
  if (file.descriptor_ < 0) {
    ::CloseHandle(handle);
    return system_error(doing, path, errno);
  }
  file.path_ = path;
  return file;
}

void File::close() noexcept {
  if (descriptor_ >= 0) ::_close(std::exchange(descriptor_, -1));
}

Result<std::uint64_t> File::size() const {
  const HANDLE handle = handle_of(descriptor_);
  LARGE_INTEGER size{};
  if (::GetFileType(handle) != FILE_TYPE_DISK) {
    return Error{ErrorCode::input, path_.string() + " is not a regular file", "give the path of a file"};
  }
  if (::GetFileSizeEx(handle, &size) == 0) return last_error("look at", path_);
  return static_cast<std::uint64_t>(size.QuadPart);
}

Status File::write(std::span<const SharedBytes> parts) {
  std::uint64_t total = 0;
  for (const SharedBytes& part : parts) total += part.size();
  for (const SharedBytes& part : parts) {
    for (auto left = part.bytes(); !left.empty();) {
      const int written =
          ::_write(descriptor_, left.data(), static_cast<unsigned>(std::min<std::size_t>(left.size(), kBytesMax)));
      if (written < 0) return system_error("write", path_, errno, total);
      if (written == 0) return system_error("write", path_, ENOSPC, total);
      left = left.subspan(static_cast<std::size_t>(written));
    }
  }
  return {};
}

// A read at a place moves the position, which belongs to the writes.
Status File::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  const HANDLE handle = handle_of(descriptor_);
  const std::int64_t position = ::_lseeki64(descriptor_, 0, SEEK_CUR);
  const auto read = [&]() -> Status {
    while (!out.empty()) {
      OVERLAPPED at{};
      at.Offset = static_cast<DWORD>(offset);
      at.OffsetHigh = static_cast<DWORD>(offset >> 32);
      DWORD got = 0;
      const auto wanted = static_cast<DWORD>(std::min<std::size_t>(out.size(), kBytesMax));
      if (::ReadFile(handle, out.data(), wanted, &got, &at) == 0 && ::GetLastError() != ERROR_HANDLE_EOF)
        return last_error("read", path_);
      if (got == 0) {
        return Error{ErrorCode::input,
                     path_.string() + " ends at byte " + std::to_string(offset) + ", " + std::to_string(out.size()) +
                         " more were expected",
                     "the file is cut short; copy it again"};
      }
      offset += got;
      out = out.subspan(got);
    }
    return {};
  };
  Status done = read();
  if (position >= 0) ::_lseeki64(descriptor_, position, SEEK_SET);
  return done;
}

Status File::truncate(std::uint64_t size) {
  if (const int failed = ::_chsize_s(descriptor_, static_cast<std::int64_t>(size)); failed != 0)
    return system_error("truncate", path_, failed);
  if (::_lseeki64(descriptor_, static_cast<std::int64_t>(size), SEEK_SET) < 0)
    return system_error("seek in", path_, errno);
  return {};
}

Status File::sync() {
  if (::FlushFileBuffers(handle_of(descriptor_)) == 0) return last_error("sync", path_);
  return {};
}

// Only a file that was opened so writes past the cache.
void File::write_past_cache() noexcept {}
void File::write_by_cache() noexcept {}

Result<bool> File::try_lock() {
  OVERLAPPED at{};
  at.Offset = kLockedByte;
  if (::LockFileEx(handle_of(descriptor_), LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at) != 0)
    return true;
  const DWORD failed = ::GetLastError();
  if (failed == ERROR_LOCK_VIOLATION || failed == ERROR_IO_PENDING) return false;
  return system_error("lock", path_, errno_of_windows(failed));
}

// NTFS writes what changes in a directory to its journal, in order; there is no call that waits for it without
// administrator's rights.
Status sync_directory(const std::filesystem::path& /*directory*/) { return {}; }

Status rename_path(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::MoveFileExW(from.c_str(), to.c_str(), MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH) == 0)
    return last_error("rename " + from.string() + " to", to);
  return {};
}

}  // namespace motley::store
