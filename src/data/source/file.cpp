#include "data/source/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/assert.h"
#include "data/source/buffer.h"

namespace motley::data {
namespace {

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

class FileSource final : public Source {
 public:
  FileSource(Descriptor descriptor, std::string path, std::uint64_t size)
      : descriptor_(std::move(descriptor)), path_(std::move(path)), size_(size) {}

  [[nodiscard]] const std::string& name() const override { return path_; }
  [[nodiscard]] std::uint64_t size() const override { return size_; }

  [[nodiscard]] Result<SharedBytes> read(std::uint64_t offset, std::uint64_t count) const override {
    MOTLEY_ASSERT(offset <= size_ && count <= size_ - offset);
    Result<MutableBytes> buffer = allocate(count, path_);
    if (!buffer) return std::move(buffer).error();
    std::span<std::byte> left = buffer->bytes();
    while (!left.empty()) {
      const ssize_t got =
          ::pread(descriptor_.get(), left.data(), std::min(left.size(), kReadBytesMax), static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return Error{ErrorCode::io, path_ + ": reading failed: " + reason(errno), "check the disk"};
      if (got == 0) return Error{ErrorCode::io, path_ + ": became shorter while it was read", "try again"};
      left = left.subspan(static_cast<std::size_t>(got));
      offset += static_cast<std::uint64_t>(got);
    }
    return std::move(*buffer).seal();
  }

  [[nodiscard]] Result<SharedBytes> view() const override {
    if (size_ == 0) return SharedBytes();
    const auto size = static_cast<std::size_t>(size_);
    void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor_.get(), 0);
    if (data == MAP_FAILED) return Error{ErrorCode::io, path_ + ": cannot be mapped: " + reason(errno), ""};
    std::shared_ptr<const void> owner(data, [size](void* bytes) { ::munmap(bytes, size); });
    return SharedBytes(std::move(owner), {static_cast<const std::byte*>(data), size});
  }

 private:
  Descriptor descriptor_;
  std::string path_;
  std::uint64_t size_;
};

}  // namespace

Result<std::shared_ptr<const Source>> open_file(const std::string& path) {
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
  return std::shared_ptr<const Source>(
      std::make_shared<FileSource>(std::move(descriptor), path, static_cast<std::uint64_t>(info.st_size)));
}

}  // namespace motley::data
