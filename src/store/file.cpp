#include "store/file.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/assert.h"
#include "base/format.h"

namespace motley::store {
namespace {

bool is_full(int code) {
#ifdef EDQUOT
  if (code == EDQUOT) return true;
#endif
  return code == ENOSPC || code == EFBIG;
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

Status File::write(std::span<const std::byte> bytes) {
  const SharedBytes part(nullptr, bytes);
  return write(std::span(&part, 1));
}

Status make_directories(const std::filesystem::path& directory) {
  std::error_code failure, refused;
  if (std::filesystem::is_directory(directory, failure)) return {};
  const auto parent = std::filesystem::absolute(directory, failure).parent_path();
  if (!failure && parent != directory) {
    if (Status made = make_directories(parent); !made) return made;
  }
  std::filesystem::create_directory(directory, refused);  // another process may have been first
  if (!std::filesystem::is_directory(directory, failure)) {
    if (std::filesystem::exists(directory, failure)) {
      return Error{ErrorCode::input, directory.string() + " exists and is not a directory", "choose another path"};
    }
    return system_error("create the directory", directory, refused.default_error_condition().value());
  }
  return sync_directory(parent);
}

std::filesystem::path hidden_beside(const std::filesystem::path& path, std::string_view tag) {
  std::string name(1, '.');
  name.append(path.filename().string())
      .append(1, '.')
      .append(tag)
      .append(1, '-')
      .append(std::to_string(this_process()));
  return path.parent_path() / name;
}

Status replace_file(const std::filesystem::path& path, std::string_view content, bool secret) {
  const auto temporary = hidden_beside(path, "tmp");
  const auto write = [&]() -> Status {
    std::error_code ignored;
    if (secret) std::filesystem::remove(temporary, ignored);  // of a process that crashed
    auto file = File::open(temporary, secret ? File::Mode::create_secret : File::Mode::create);
    if (!file) return std::move(file).error();
    if (Status done = file->write(std::as_bytes(std::span(content))); !done) return done;
    if (Status done = file->sync(); !done) return done;
    return rename_path(temporary, path);
  };
  if (Status done = write(); !done) {
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
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
