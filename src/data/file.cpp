#include "data/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <new>
#include <system_error>

#include "machine/spare_memory.h"

namespace motley::data {
namespace {

constexpr std::uint64_t kWorthAsking = std::uint64_t{8} << 20;
constexpr std::size_t kReadBytesMax = std::size_t{1} << 30;  // macOS refuses reads of 2 GiB and more

class Descriptor {
 public:
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const noexcept { return fd_; }

 private:
  int fd_;
};

std::string reason(int number) { return std::generic_category().message(number); }

struct OpenFile {
  Descriptor descriptor;
  std::uint64_t size;
};

Result<OpenFile> open_regular(const std::string& path) {
  // O_NONBLOCK: opening a FIFO must not hang; it means nothing for regular files.
  Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (descriptor.get() < 0) {
    const int number = errno;
    const bool missing = number == ENOENT || number == ENOTDIR;
    return Error{missing ? ErrorCode::input : ErrorCode::io, path + ": cannot be opened: " + reason(number),
                 missing ? "check the path; a relative one starts at the working directory"
                         : "check that you may read the file"};
  }
  struct stat info{};
  if (::fstat(descriptor.get(), &info) != 0) return Error{ErrorCode::io, path + ": " + reason(errno), ""};
  if (!S_ISREG(info.st_mode)) {
    return Error{ErrorCode::input, path + ": expected a file, found a directory or a device", "name the file itself"};
  }
  return OpenFile{std::move(descriptor), static_cast<std::uint64_t>(info.st_size)};
}

}  // namespace

Result<MutableBytes> allocate(std::uint64_t size, const std::string& what_for) {
  constexpr std::align_val_t kAlignment{64};
  if (size >= kWorthAsking) {
    Status room = machine::check_memory_for(size, what_for, "use a smaller data set, or a machine with more memory");
    if (!room) return room.error();
  }
  void* data = nullptr;
  if (size <= std::numeric_limits<std::size_t>::max() / 2) {
    data = ::operator new(static_cast<std::size_t>(size), kAlignment, std::nothrow);
  }
  if (data == nullptr) {
    return Error{ErrorCode::memory, what_for + ": " + std::to_string(size >> 20) + " MiB of memory are not to be had",
                 "use a smaller data set, or a machine with more memory"};
  }
  std::shared_ptr<void> owner(data, [](void* bytes) { ::operator delete(bytes, std::align_val_t{64}); });
  return MutableBytes(std::move(owner), {static_cast<std::byte*>(data), static_cast<std::size_t>(size)});
}

Result<SharedBytes> read_file(const std::string& path) {
  Result<OpenFile> file = open_regular(path);
  if (!file) return std::move(file).error();
  Result<MutableBytes> buffer = allocate(file->size, path);
  if (!buffer) return std::move(buffer).error();
  std::span<std::byte> left = buffer->bytes();
  while (!left.empty()) {
    const ssize_t got = ::read(file->descriptor.get(), left.data(), std::min(left.size(), kReadBytesMax));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error{ErrorCode::io, path + ": reading failed: " + reason(errno), "check the disk"};
    if (got == 0) return Error{ErrorCode::io, path + ": became shorter while it was read", "try again"};
    left = left.subspan(static_cast<std::size_t>(got));
  }
  return std::move(*buffer).seal();
}

Result<SharedBytes> map_file(const std::string& path) {
  Result<OpenFile> file = open_regular(path);
  if (!file) return std::move(file).error();
  if (file->size == 0) return SharedBytes();
  const auto size = static_cast<std::size_t>(file->size);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file->descriptor.get(), 0);
  if (data == MAP_FAILED) return Error{ErrorCode::io, path + ": cannot be mapped: " + reason(errno), ""};
  std::shared_ptr<const void> owner(data, [size](void* bytes) { ::munmap(bytes, size); });
  return SharedBytes(std::move(owner), {static_cast<const std::byte*>(data), size});
}

}  // namespace motley::data
