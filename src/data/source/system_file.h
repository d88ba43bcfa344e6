#pragma once
// A file that is read, as the system has it: errors are numbers of errno. Any thread.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace motley::data {

class SystemFile {
 public:
  /// is_open() is false and error() says why, where that failed.
  explicit SystemFile(const std::string& path);
  SystemFile(SystemFile&& other) noexcept : handle_(std::exchange(other.handle_, kNone)), error_(other.error_) {}
  SystemFile& operator=(SystemFile&&) = delete;
  ~SystemFile();

  [[nodiscard]] bool is_open() const noexcept { return handle_ != kNone; }
  [[nodiscard]] int error() const noexcept { return error_; }
  [[nodiscard]] bool is_regular() const;
  [[nodiscard]] std::uint64_t size() const;
  /// How many bytes came, 0 at the end, -1 with `error` set.
  std::ptrdiff_t read_at(std::uint64_t offset, std::span<std::byte> out, int& error) const;
  /// All of it, as long as what is returned lives; null with `error` set. REQUIRES it is not empty.
  [[nodiscard]] std::shared_ptr<const void> map(std::size_t size, int& error) const;

 private:
  static constexpr std::intptr_t kNone = -1;
  std::intptr_t handle_ = kNone;
  int error_ = 0;
};

}  // namespace motley::data
