#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "data/source/system_file.h"

namespace motley::data {
namespace {

constexpr std::size_t kReadBytesMax = std::size_t{1} << 30;  // macOS refuses reads of 2 GiB and more

int descriptor_of(std::intptr_t handle) { return static_cast<int>(handle); }

}  // namespace

// O_NONBLOCK: opening a FIFO must not hang; it means nothing for regular files.
SystemFile::SystemFile(const std::string& path) : handle_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (!is_open()) error_ = errno;
}

SystemFile::~SystemFile() {
  if (is_open()) ::close(descriptor_of(handle_));
}

bool SystemFile::is_regular() const {
  struct stat info{};
  return ::fstat(descriptor_of(handle_), &info) == 0 && S_ISREG(info.st_mode);
}

std::uint64_t SystemFile::size() const {
  struct stat info{};
  return ::fstat(descriptor_of(handle_), &info) == 0 ? static_cast<std::uint64_t>(info.st_size) : 0;
}

std::ptrdiff_t SystemFile::read_at(std::uint64_t offset, std::span<std::byte> out, int& error) const {
  const std::size_t wanted = std::min(out.size(), kReadBytesMax);
  for (;;) {
    const ssize_t got = ::pread(descriptor_of(handle_), out.data(), wanted, static_cast<off_t>(offset));
    if (got >= 0) return got;
    if (errno == EINTR) continue;
    error = errno;
    return -1;
  }
}

std::shared_ptr<const void> SystemFile::map(std::size_t size, int& error) const {
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor_of(handle_), 0);
  if (data == MAP_FAILED) {
    error = errno;
    return nullptr;
  }
  return {data, [size](void* bytes) { ::munmap(bytes, size); }};
}

}  // namespace motley::data
