#pragma once
// What the tests of data share: bytes from text, gzip, a source in memory, a directory that goes away.

#include <gtest/gtest.h>
#include <stdlib.h>
#include <zlib.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/xxh64.h"
#include "data/source/download.h"
#include "data/source/source.h"

namespace motley::data::test {

using Bytes = std::vector<std::byte>;

inline Bytes bytes_of_text(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// Stands for SHA-256 where it only matters whether the bytes are the ones that were published.
inline std::string digest_of(std::span<const std::byte> bytes) { return std::to_string(xxh64(bytes)); }

/// Brings "file://" URLs, in two pieces.
inline Retrieve from_files() {
  return [](const std::string& url, const TakeBytes& take) -> Status {
    std::ifstream file(url.substr(std::string_view("file://").size()), std::ios::binary);
    if (!file) return Error{ErrorCode::network, "there is nothing", ""};
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const auto bytes = std::as_bytes(std::span(text));
    for (const auto& piece : {bytes.first(bytes.size() / 2), bytes.subspan(bytes.size() / 2)}) {
      if (!piece.empty() && !take(piece, bytes.size())) return Error{ErrorCode::network, "it was not taken", ""};
    }
    return {};
  };
}

inline Bytes from_hex(std::string_view hex) {
  Bytes out;
  std::string digits;
  for (const char c : hex) {
    if (c == ' ') continue;
    digits += c;
    if (digits.size() < 2) continue;
    out.push_back(static_cast<std::byte>(std::stoi(digits, nullptr, 16)));
    digits.clear();
  }
  return out;
}

inline Bytes operator+(Bytes left, const Bytes& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

inline Bytes gzip(const Bytes& plain) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  Bytes out(deflateBound(&stream, static_cast<uLong>(plain.size())) + 32);
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(plain.data()));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

/// An IDX file of u8.
inline Bytes idx(std::initializer_list<unsigned> shape, const Bytes& elements) {
  Bytes out{std::byte{0}, std::byte{0}, std::byte{8}, static_cast<std::byte>(shape.size())};
  for (const unsigned extent : shape) {
    for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<std::byte>(extent >> shift));
  }
  return out + elements;
}

/// An npy file of version 1 with the given header text.
inline Bytes npy(std::string_view header, const Bytes& elements) {
  Bytes out = from_hex("93 4e 55 4d 50 59 01 00");
  out.push_back(static_cast<std::byte>(header.size()));
  out.push_back(static_cast<std::byte>(header.size() >> 8));
  return out + bytes_of_text(header) + elements;
}

class Directory {
 public:
  Directory() : path_((std::filesystem::temp_directory_path() / "motley-test-XXXXXX").string()) {
    EXPECT_NE(::mkdtemp(path_.data()), nullptr);
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  ~Directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const { return path_; }
  std::string write(const std::string& name, const Bytes& bytes) const {
    const std::string path = path_ + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return path;
  }

 private:
  std::string path_;
};

inline std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A source that is no file, and counts what is read of it.
class Memory : public Source {
 public:
  Memory(std::string name, Bytes bytes) : name_(std::move(name)), bytes_(std::move(bytes)) {}
  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] std::uint64_t size() const override { return bytes_.size(); }
  [[nodiscard]] Result<SharedBytes> read(std::uint64_t offset, std::uint64_t count) const override {
    read_ += count;
    return SharedBytes::copy_of(std::span(bytes_).subspan(offset, count));
  }
  [[nodiscard]] std::uint64_t read_bytes() const { return read_; }

 protected:
  [[nodiscard]] const Bytes& bytes() const { return bytes_; }

 private:
  std::string name_;
  Bytes bytes_;
  mutable std::uint64_t read_ = 0;
};

}  // namespace motley::data::test
