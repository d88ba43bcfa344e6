#include "store/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/assert.h"
#include "base/format.h"

namespace motley::store {
namespace {

constexpr std::size_t kPiecesMax = 256;                       // of one writev; every system takes as many
constexpr std::size_t kWriteBytesMax = std::size_t{1} << 30;  // macOS refuses calls of 2 GiB and more

bool is_full(int code) { return code == ENOSPC || code == EDQUOT || code == EFBIG; }

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

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kShownMax = 100;
  std::string out = "\"";
  for (const char c : text.substr(0, kShownMax)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f || c == '"' || c == '\\') {
      out += formatted("\\x%02x", static_cast<unsigned>(byte));
    } else {
      out += c;
    }
  }
  return out + (text.size() > kShownMax ? "…\"" : "\"");
}

Error system_error(std::string_view what, const std::filesystem::path& path, int code, std::uint64_t bytes_needed) {
  const std::string reason = std::generic_category().message(code);
  std::string message = "cannot " + std::string(what) + " " + path.string() + ": " + reason;
  if (is_full(code)) {
    if (bytes_needed > 0) message += "; " + std::to_string(bytes_needed) + " bytes were needed";
    const std::string hint = code == EFBIG
                                 ? "raise the limit on the size of files (ulimit -f), or check the file system"
                                 : "free space on that disk, or put the run on another one with --run DIR";
    return {ErrorCode::disk_full, message, hint};
  }
  const bool permission = code == EACCES || code == EPERM || code == EROFS;
  return {ErrorCode::io, message,
          permission ? "check who owns it and whether you may write there" : "check the path and the disk"};
}

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
  }
  const mode_t permissions = mode == Mode::create_secret ? 0600 : 0666;
  File file;
  do {
    file.descriptor_ = ::open(path.c_str(), flags, permissions);
  } while (file.descriptor_ < 0 && errno == EINTR);
  if (file.descriptor_ < 0) return system_error(mode == Mode::read ? "open" : "create", path, errno);
  file.path_ = path;
  return file;
}

File::File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}

File& File::operator=(File&& other) noexcept {
  if (this != &other) {
    close();
    descriptor_ = std::exchange(other.descriptor_, -1);
    path_ = std::move(other.path_);
  }
  return *this;
}

File::~File() { close(); }

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

Status File::write(std::span<const std::byte> bytes) {
  const SharedBytes part(nullptr, bytes);
  return write(std::span(&part, 1));
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

void File::forget() const noexcept {
#ifdef POSIX_FADV_DONTNEED
  (void)::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_DONTNEED);
#endif
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

Status make_directories(const std::filesystem::path& directory) {
  std::error_code failure;
  if (std::filesystem::is_directory(directory, failure)) return {};
  const auto parent = std::filesystem::absolute(directory, failure).parent_path();
  if (!failure && parent != directory) {
    if (Status made = make_directories(parent); !made) return made;
  }
  if (::mkdir(directory.c_str(), 0777) != 0 && errno != EEXIST) {
    return system_error("create the directory", directory, errno);
  }
  if (!std::filesystem::is_directory(directory, failure)) {
    return Error{ErrorCode::input, directory.string() + " exists and is not a directory", "choose another path"};
  }
  return sync_directory(parent);
}

Status rename_path(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return system_error("rename " + from.string() + " to", to, errno);
  return {};
}

std::filesystem::path hidden_beside(const std::filesystem::path& path, std::string_view tag) {
  std::string name(1, '.');
  name.append(path.filename().string()).append(1, '.').append(tag).append(1, '-').append(std::to_string(::getpid()));
  return path.parent_path() / name;
}

Status replace_file(const std::filesystem::path& path, std::string_view content, bool secret) {
  const auto temporary = hidden_beside(path, "tmp");
  const auto write = [&]() -> Status {
    if (secret) ::unlink(temporary.c_str());  // of a process that crashed
    auto file = File::open(temporary, secret ? File::Mode::create_secret : File::Mode::create);
    if (!file) return std::move(file).error();
    if (Status done = file->write(std::as_bytes(std::span(content))); !done) return done;
    if (Status done = file->sync(); !done) return done;
    return rename_path(temporary, path);
  };
  if (Status done = write(); !done) {
    ::unlink(temporary.c_str());
    return done;
  }
  return sync_directory(path.has_parent_path() ? path.parent_path() : std::filesystem::path("."));
}

Result<std::string> read_whole_file(const std::filesystem::path& path, std::uint64_t bytes_max) {
  auto file = File::open(path, File::Mode::read);
  if (!file) return std::move(file).error();
  auto size = file->size();
  if (!size) return std::move(size).error();
  if (*size > bytes_max) {
    return Error{ErrorCode::input,
                 path.string() + " has " + std::to_string(*size) + " bytes; at most " + std::to_string(bytes_max) +
                     " were expected",
                 "is it the right file?"};
  }
  std::string content(static_cast<std::size_t>(*size), '\0');
  if (Status done = file->read_at(0, std::as_writable_bytes(std::span(content))); !done) return std::move(done).error();
  return content;
}

void remove_leftovers(const std::filesystem::path& directory, std::string_view prefix, std::string_view tag) {
  std::error_code ignored;  // what cannot be removed does no harm
  std::vector<std::filesystem::path> found;
  for (auto entry = std::filesystem::directory_iterator(directory, ignored);
       !ignored && entry != std::filesystem::directory_iterator(); entry.increment(ignored)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with('.') && std::string_view(name).substr(1).starts_with(prefix) &&
        name.find(tag) != std::string::npos)
      found.push_back(entry->path());
  }
  for (const auto& path : found) std::filesystem::remove_all(path, ignored);
}

}  // namespace motley::store
