#include "store/secret_file.h"

#include "store/file.h"
#include "store/possession.h"

namespace motley::store {

Status write_secret_file(const std::filesystem::path& path, std::string_view content) {
  std::error_code failure;
  const std::filesystem::file_status found = std::filesystem::symlink_status(path, failure);
  if (std::filesystem::exists(found)) {
    if (!std::filesystem::is_regular_file(found))
      return Error{ErrorCode::io, path.string() + " is there and no file", "another name, or remove it"};
    const Result<Possession> possession = possession_of(path);
    if (!possession) return possession.error();
    if (!possession->ours)
      return Error{ErrorCode::io, path.string() + " belongs to somebody else",
                   "another name, in a directory of your own"};
  }
  return replace_file(path, content, true);
}

Status append_secret_line(const std::filesystem::path& path, std::string_view line, std::uint64_t bytes_max) {
  Result<File> file = File::open(path, File::Mode::append_secret);
  if (!file) return std::move(file).error();
  const std::string text = std::string(line) + "\n";
  const Result<std::uint64_t> size = file->size();
  const Result<Possession> possession = possession_of(*file);
  if (!size || !possession || !possession->ours)
    return Error{ErrorCode::io, path.string() + " is no file of this user", "remove it"};
  if (*size + text.size() > bytes_max)
    return Error{ErrorCode::input, path.string() + " has " + std::to_string(*size) + " bytes already", ""};
  return file->write(std::as_bytes(std::span(text)));
}

Result<std::string> read_secret_file(const std::filesystem::path& path, std::uint64_t bytes_max) {
  std::error_code failure;
  const std::filesystem::file_status found = std::filesystem::status(path, failure);
  if (!std::filesystem::exists(found))
    return Error{ErrorCode::input, path.string() + " is not there", "check the name"};
  if (!std::filesystem::is_regular_file(found))
    return Error{ErrorCode::input, path.string() + " is no file", "check the name"};
  Result<File> file = File::open(path, File::Mode::read);
  if (!file) return std::move(file).error();
  const Result<Possession> possession = possession_of(*file);
  if (!possession) return possession.error();
  if (!possession->trusted) {
    return Error{ErrorCode::input, path.string() + " belongs to somebody else, who may have put anything there",
                 "a file of your own; or the token itself: motley join motley1.…"};
  }
  if (possession->others_write) {
    return Error{ErrorCode::input, path.string() + " can be written by others, who may have put anything there",
                 how_to_close(path)};
  }
  const Result<std::uint64_t> size = file->size();
  if (!size) return size.error();
  if (*size > bytes_max) {
    return Error{ErrorCode::input,
                 path.string() + " has " + std::to_string(*size) + " bytes; at most " + std::to_string(bytes_max) +
                     " were expected",
                 "is it the right file?"};
  }
  std::string content(static_cast<std::size_t>(*size), '\0');
  if (Status read = file->read_at(0, std::as_writable_bytes(std::span(content))); !read) return std::move(read).error();
  return content;
}

}  // namespace motley::store
