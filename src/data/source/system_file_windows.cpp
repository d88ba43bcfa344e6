#include <windows.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/windows_errors.h"
#include "data/source/system_file.h"

namespace motley::data {
namespace {

constexpr std::size_t kReadBytesMax = std::size_t{1} << 30;

HANDLE handle_at(std::intptr_t handle) { return reinterpret_cast<HANDLE>(handle); }

}  // namespace

// FILE_FLAG_BACKUP_SEMANTICS: a directory is opened, and then told apart from a file.
SystemFile::SystemFile(const std::string& path)
    : handle_(reinterpret_cast<std::intptr_t>(::CreateFileW(
          std::filesystem::path(path).c_str(), GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
          nullptr, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL | FILE_FLAG_BACKUP_SEMANTICS, nullptr))) {
  if (!is_open()) error_ = errno_of_windows(::GetLastError());
}

SystemFile::~SystemFile() {
  if (is_open()) ::CloseHandle(handle_at(handle_));
}

bool SystemFile::is_regular() const {
  BY_HANDLE_FILE_INFORMATION about{};
  return ::GetFileType(handle_at(handle_)) == FILE_TYPE_DISK &&
         ::GetFileInformationByHandle(handle_at(handle_), &about) != 0 &&
         (about.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) == 0;
}

std::uint64_t SystemFile::size() const {
  LARGE_INTEGER size{};
  return ::GetFileSizeEx(handle_at(handle_), &size) != 0 ? static_cast<std::uint64_t>(size.QuadPart) : 0;
}

std::ptrdiff_t SystemFile::read_at(std::uint64_t offset, std::span<std::byte> out, int& error) const {
  OVERLAPPED at{};
  at.Offset = static_cast<DWORD>(offset);
  at.OffsetHigh = static_cast<DWORD>(offset >> 32);
  DWORD got = 0;
  const auto wanted = static_cast<DWORD>(std::min(out.size(), kReadBytesMax));
  if (::ReadFile(handle_at(handle_), out.data(), wanted, &got, &at) != 0) return static_cast<std::ptrdiff_t>(got);
  const DWORD failed = ::GetLastError();
  if (failed == ERROR_HANDLE_EOF) return 0;
  error = errno_of_windows(failed);
  return -1;
}

std::shared_ptr<const void> SystemFile::map(std::size_t /*size*/, int& error) const {
  const HANDLE section = ::CreateFileMappingW(handle_at(handle_), nullptr, PAGE_READONLY, 0, 0, nullptr);
  void* data = section != nullptr ? ::MapViewOfFile(section, FILE_MAP_READ, 0, 0, 0) : nullptr;
  if (data == nullptr) error = errno_of_windows(::GetLastError());
  if (section != nullptr) ::CloseHandle(section);  // the view keeps it
  if (data == nullptr) return nullptr;
  return {data, [](void* bytes) { ::UnmapViewOfFile(bytes); }};
}

}  // namespace motley::data
