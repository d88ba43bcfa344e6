#include "data/source/file.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/assert.h"
#include "data/source/buffer.h"
#include "data/source/system_file.h"

namespace motley::data {
namespace {

std::string reason(int number) { return std::generic_category().message(number); }

class FileSource final : public Source {
 public:
  FileSource(SystemFile file, std::string path, std::uint64_t size)
      : file_(std::move(file)), path_(std::move(path)), size_(size) {}

  [[nodiscard]] const std::string& name() const override { return path_; }
  [[nodiscard]] std::uint64_t size() const override { return size_; }

  [[nodiscard]] Result<SharedBytes> read(std::uint64_t offset, std::uint64_t count) const override {
    MOTLEY_ASSERT(offset <= size_ && count <= size_ - offset);
    Result<MutableBytes> buffer = allocate(count, path_);
    if (!buffer) return std::move(buffer).error();
    std::span<std::byte> left = buffer->bytes();
    while (!left.empty()) {
      int error = 0;
      const std::ptrdiff_t got = file_.read_at(offset, left, error);
      if (got < 0) return Error{ErrorCode::io, path_ + ": reading failed: " + reason(error), "check the disk"};
      if (got == 0) return Error{ErrorCode::io, path_ + ": became shorter while it was read", "try again"};
      left = left.subspan(static_cast<std::size_t>(got));
      offset += static_cast<std::uint64_t>(got);
    }
    return std::move(*buffer).seal();
  }

  [[nodiscard]] Result<SharedBytes> view() const override {
    if (size_ == 0) return SharedBytes();
    const auto size = static_cast<std::size_t>(size_);
    int error = 0;
    std::shared_ptr<const void> data = file_.map(size, error);
    if (data == nullptr) return Error{ErrorCode::io, path_ + ": cannot be mapped: " + reason(error), ""};
    const auto* first = static_cast<const std::byte*>(data.get());
    return SharedBytes(std::move(data), {first, size});
  }

 private:
  SystemFile file_;
  std::string path_;
  std::uint64_t size_;
};

}  // namespace

Result<std::shared_ptr<const Source>> open_file(const std::string& path) {
  SystemFile file(path);
  if (!file.is_open()) {
    const int number = file.error();
    const bool missing = number == ENOENT || number == ENOTDIR;
    return Error{missing ? ErrorCode::input : ErrorCode::io, path + ": cannot be opened: " + reason(number),
                 missing ? "check the path; a relative one starts at the working directory"
                         : "check that you may read the file"};
  }
  if (!file.is_regular()) {
    return Error{ErrorCode::input, path + ": expected a file, found a directory or a device", "name the file itself"};
  }
  const std::uint64_t size = file.size();
  return std::shared_ptr<const Source>(std::make_shared<FileSource>(std::move(file), path, size));
}

}  // namespace motley::data
