#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "store/file.h"

namespace motley::store {
namespace {

constexpr std::size_t kPiecesMax = 256;                       // of one writev; every system takes as many
constexpr std::size_t kWriteBytesMax = std::size_t{1} << 30;  // macOS refuses calls of 2 GiB and more

// True: it is otherwise than before.
bool past_cache([[maybe_unused]] int descriptor, [[maybe_unused]] bool wanted) noexcept {
#if defined(O_DIRECT)
  const int flags = ::fcntl(descriptor, F_GETFL);
  const bool there = flags >= 0 && (flags & O_DIRECT) != 0;
  return flags >= 0 && there != wanted && ::fcntl(descriptor, F_SETFL, flags ^ O_DIRECT) == 0;
#else
#if defined(F_NOCACHE)
  (void)::fcntl(descriptor, F_NOCACHE, wanted ? 1 : 0);  // refuses no write
#endif
  return false;
#endif
}

// Writes as much of `pieces` as one call takes, retrying interruptions; -1 with errno set when it fails.
ssize_t write_some(int descriptor, std::span<iovec> pieces) {
  for (;;) {
    const ssize_t written = ::writev(descriptor, pieces.data(), static_cast<int>(pieces.size()));
    if (written >= 0) return written;
    if (errno == EINTR) continue;
    // What file systems answer whose blocks are larger, or whose direct writes end at an odd place.
    const int code = errno;
    if (code == EINVAL && past_cache(descriptor, false)) continue;
    errno = code;
    return written;
  }
}

}  // namespace

long this_process() noexcept { return ::getpid(); }

Result<File> File::open(const std::filesystem::path& path, Mode mode) {
  int flags = O_CLOEXEC;
  switch (mode) {
    case Mode::read:
      flags |= O_RDONLY;
      break;
    case Mode::append:
      flags |= O_RDWR | O_CREAT | O_APPEND;
      break;
    case Mode::create:
      flags |= O_RDWR | O_CREAT | O_TRUNC;
      break;
    case Mode::create_secret:
      flags |= O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW;
      break;
    case Mode::append_secret:
      flags |= O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW;
      break;
  }
  const bool secret = mode == Mode::create_secret || mode == Mode::append_secret;
  const mode_t permissions = secret ? 0600 : 0666;
  File file;
  do {
    file.descriptor_ = ::open(path.c_str(), flags, permissions);
  } while (file.descriptor_ < 0 && errno == EINTR);
  if (file.descriptor_ < 0) return system_error(mode == Mode::read ? "open" : "create", path, errno);
  file.path_ = path;
  return file;
}

void File::close() noexcept {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

Result<std::uint64_t> File::size() const {
  struct stat status{};
  if (::fstat(descriptor_, &status) != 0) return system_error("look at", path_, errno);
  if (!S_ISREG(status.st_mode)) {
    return Error{ErrorCode::input, path_.string() + " is not a regular file", "give the path of a file"};
  }
  return static_cast<std::uint64_t>(status.st_size);
}

Status File::write(std::span<const SharedBytes> parts) {
  std::uint64_t left = 0;
  for (const SharedBytes& part : parts) left += part.size();
  const std::uint64_t total = left;
  std::size_t part = 0;
  std::size_t offset = 0;  // into parts[part]
  std::array<iovec, kPiecesMax> pieces{};
  while (left > 0) {
    std::size_t count = 0;
    std::size_t bytes = 0;
    for (std::size_t i = part, at = offset; i < parts.size() && count < kPiecesMax && bytes < kWriteBytesMax;
         ++i, at = 0) {
      const auto piece = parts[i].bytes().subspan(at);
      if (piece.empty()) continue;
      const std::size_t length = std::min(piece.size(), kWriteBytesMax - bytes);
      // writev takes pointers to non-const and only reads them.
      pieces[count++] = {const_cast<std::byte*>(piece.data()), length};
      bytes += length;
    }
    const ssize_t result = write_some(descriptor_, std::span(pieces).first(count));
    if (result < 0) return system_error("write", path_, errno, total);
    if (result == 0) return system_error("write", path_, ENOSPC, total);
    auto written = static_cast<std::size_t>(result);
    left -= written;
    while (written > 0) {
      const std::size_t rest = parts[part].size() - offset;
      const std::size_t step = std::min(rest, written);
      written -= step;
      offset += step;
      if (offset == parts[part].size()) {
        ++part;
        offset = 0;
      }
    }
  }
  return {};
}

Status File::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t result =
        ::pread(descriptor_, out.data(), std::min(out.size(), kWriteBytesMax), static_cast<off_t>(offset));
    if (result < 0 && errno == EINTR) continue;
    if (result < 0) return system_error("read", path_, errno);
    if (result == 0) {
      return Error{ErrorCode::input,
                   path_.string() + " ends at byte " + std::to_string(offset) + ", " + std::to_string(out.size()) +
                       " more were expected",
                   "the file is cut short; copy it again"};
    }
    offset += static_cast<std::uint64_t>(result);
    out = out.subspan(static_cast<std::size_t>(result));
  }
  return {};
}

// On a file system that refuses it, at once or with the first write, the cache is used as before.
void File::write_past_cache() noexcept { (void)past_cache(descriptor_, true); }
void File::write_by_cache() noexcept { (void)past_cache(descriptor_, false); }

Status File::truncate(std::uint64_t size) {
  if (::ftruncate(descriptor_, static_cast<off_t>(size)) != 0) return system_error("truncate", path_, errno);
  if (::lseek(descriptor_, static_cast<off_t>(size), SEEK_SET) < 0) return system_error("seek in", path_, errno);
  return {};
}

Status File::sync() {
#ifdef F_FULLFSYNC
  // fsync of macOS stops at the disk's cache; some file systems do not know F_FULLFSYNC, so fsync follows.
  if (::fcntl(descriptor_, F_FULLFSYNC) == 0) return {};
#endif
  while (::fsync(descriptor_) != 0) {
    if (errno != EINTR) return system_error("sync", path_, errno);
  }
  return {};
}

Result<bool> File::try_lock() {
  while (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return false;
    if (errno != EINTR) return system_error("lock", path_, errno);
  }
  return true;
}

Status sync_directory(const std::filesystem::path& directory) {
  auto opened = File::open(directory, File::Mode::read);
  if (!opened) return std::move(opened).error();
  while (::fsync(opened->descriptor()) != 0) {
    // Some network file systems cannot sync a directory; there a rename is as durable as they make it.
    if (errno == EINVAL || errno == ENOTSUP) return {};
    if (errno != EINTR) return system_error("sync", directory, errno);
  }
  return {};
}

Status rename_path(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return system_error("rename " + from.string() + " to", to, errno);
  return {};
}

}  // namespace motley::store
