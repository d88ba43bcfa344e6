#pragma once
// A file beside its final place, under a name that nobody else has; deleted unless it is kept. Errors are numbers of
// errno. One thread.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace motley::data {

class PartialFile {
 public:
  explicit PartialFile(const std::string& final_path);
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;
  ~PartialFile();

  [[nodiscard]] int error() const noexcept { return error_; }  // of the first failure; 0: none
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  bool write(std::span<const std::byte> bytes) noexcept;
  /// Durable, in one step, for all users to read.
  bool keep_as(const std::string& final_path) noexcept;

  /// Whether `error` says that there is no room.
  static bool is_full(int error) noexcept;

 private:
  std::string path_;
  int fd_ = -1;
  int error_ = 0;
  bool made_ = false, kept_ = false;
};

}  // namespace motley::data
