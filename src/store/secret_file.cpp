#include "store/secret_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "store/file.h"

namespace motley::store {
namespace {

constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;

bool is_trusted(const struct stat& found) { return found.st_uid == ::geteuid() || found.st_uid == 0; }

}  // namespace

Status write_secret_file(const std::filesystem::path& path, std::string_view content) {
  struct stat found{};
  if (::lstat(path.c_str(), &found) == 0) {
    if (!S_ISREG(found.st_mode))
      return Error{ErrorCode::io, path.string() + " is there and no file", "another name, or remove it"};
    if (found.st_uid != ::geteuid())
      return Error{ErrorCode::io, path.string() + " belongs to somebody else",
                   "another name, in a directory of your own"};
  }
  return replace_file(path, content, true);
}

Status append_secret_line(const std::filesystem::path& path, std::string_view line, std::uint64_t bytes_max) {
  const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return system_error("write", path, errno);
  const std::string text = std::string(line) + "\n";
  struct stat found{};
  Status status;
  if (::fstat(file, &found) != 0) {
    status = system_error("write", path, errno);
  } else if (!S_ISREG(found.st_mode) || found.st_uid != ::geteuid()) {
    status = Error{ErrorCode::io, path.string() + " is no file of this user", "remove it"};
  } else if (static_cast<std::uint64_t>(found.st_size) + text.size() > bytes_max) {
    status = Error{ErrorCode::input, path.string() + " has " + std::to_string(found.st_size) + " bytes already", ""};
  } else if (::write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    status = system_error("write", path, errno, text.size());
  }
  ::close(file);
  return status;
}

Result<std::string> read_secret_file(const std::filesystem::path& path, std::uint64_t bytes_max) {
  struct stat found{};
  if (::stat(path.c_str(), &found) != 0)
    return Error{ErrorCode::input, path.string() + " is not there", "check the name"};
  if (!S_ISREG(found.st_mode)) return Error{ErrorCode::input, path.string() + " is no file", "check the name"};
  Result<File> file = File::open(path, File::Mode::read);
  if (!file) return std::move(file).error();
  if (::fstat(file->descriptor(), &found) != 0) return system_error("read", path, errno);
  if (!is_trusted(found)) {
    return Error{ErrorCode::input, path.string() + " belongs to somebody else, who may have put anything there",
                 "a file of your own; or the token itself: motley join motley1.…"};
  }
  if ((found.st_mode & kOthersWrite) != 0) {
    return Error{ErrorCode::input, path.string() + " can be written by others, who may have put anything there",
                 "chmod 600 " + path.string()};
  }
  const auto size = static_cast<std::uint64_t>(found.st_size);
  if (size > bytes_max) {
    return Error{ErrorCode::input,
                 path.string() + " has " + std::to_string(size) + " bytes; at most " + std::to_string(bytes_max) +
                     " were expected",
                 "is it the right file?"};
  }
  std::string content(size, '\0');
  if (Status read = file->read_at(0, std::as_writable_bytes(std::span(content))); !read) return std::move(read).error();
  return content;
}

}  // namespace motley::store
