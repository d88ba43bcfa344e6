#pragma once
// What the store's tests share: a directory that is deleted with the test, and small ways to make files and bytes.

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include "motley/bytes.h"
#include "motley/result.h"

namespace motley::store::test {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    const auto all = std::filesystem::temp_directory_path();
    std::error_code taken;  // by a test that runs at the same time, and may be done with it meanwhile
    for (unsigned number = 0; number < kTriesMax; ++number) {
      path_ = all / ("motley-store-" + std::to_string(number));
      if (std::filesystem::create_directory(path_, taken)) return;
    }
    throw std::filesystem::filesystem_error("no room for a test's files", path_, taken);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  static constexpr unsigned kTriesMax = 10'000;
  std::filesystem::path path_;
};

inline std::string slurp(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline void spill(const std::filesystem::path& file, const std::string& content) {
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << content;
}

inline SharedBytes floats(const std::vector<float>& values) {
  return SharedBytes::copy_of(std::as_bytes(std::span(values)));
}

inline std::string text(const SharedBytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.bytes().data()), bytes.size()};
}

template <class T>
std::string message(const Result<T>& result) {
  return result.ok() ? std::string("ok") : result.error().message;
}

}  // namespace motley::store::test
