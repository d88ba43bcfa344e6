#include "data/format/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/little_endian.h"
#include "data/format/array.h"
#include "data/source/buffer.h"

namespace motley::data {
namespace {

constexpr std::size_t kGzipBytesMin = 20;         // header 10, empty deflate stream 2, trailer 8
constexpr std::uint64_t kDeflateRatioMax = 1032;  // the most deflate can shrink
constexpr int kGzipWindow = 15 + 16;              // the largest window, gzip wrapper only
constexpr std::size_t kStepBytesMax = 1U << 30;   // zlib counts in 32 bits

struct Inflater {
  z_stream stream{};
  bool ready = false;
  Inflater() { ready = inflateInit2(&stream, kGzipWindow) == Z_OK; }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() {
    if (ready) inflateEnd(&stream);
  }
};

uInt step(std::size_t left) noexcept { return static_cast<uInt>(std::min(left, kStepBytesMax)); }

}  // namespace

bool looks_like_gzip(std::span<const std::byte> bytes) noexcept {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1F} && bytes[1] == std::byte{0x8B};
}

Result<SharedBytes> gunzip(std::span<const std::byte> bytes, const std::string& name) {
  if (!looks_like_gzip(bytes) || bytes.size() < kGzipBytesMin) {
    return damaged(name, "a gzip file of at least 20 bytes", std::to_string(bytes.size()) + " bytes");
  }
  const std::uint64_t size = load_le<std::uint32_t>(&bytes[bytes.size() - 4]);
  if (size > bytes.size() * kDeflateRatioMax) {
    return damaged(name, "gzip data",
                   "a trailer that announces " + std::to_string(size) + " bytes, more than " +
                       std::to_string(bytes.size()) + " packed bytes can hold (is the end missing?)");
  }
  Inflater inflater;
  if (!inflater.ready) return Error{ErrorCode::memory, name + ": no memory to unpack it", "free some memory"};
  Result<MutableBytes> buffer = allocate(size, name);
  if (!buffer) return std::move(buffer).error();

  std::span<std::byte> out = buffer->bytes();
  std::byte beyond{};  // zlib wants room even when nothing is left to write
  z_stream& stream = inflater.stream;
  int code = Z_OK;
  while (code == Z_OK) {
    const std::span<std::byte> room = out.empty() ? std::span(&beyond, 1) : out;
    stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
    stream.avail_in = step(bytes.size());
    stream.next_out = reinterpret_cast<Bytef*>(room.data());
    stream.avail_out = step(room.size());
    const uInt in_before = stream.avail_in;
    const uInt out_before = stream.avail_out;
    code = inflate(&stream, Z_NO_FLUSH);
    bytes = bytes.subspan(in_before - stream.avail_in);
    const std::size_t written = out_before - stream.avail_out;
    if (out.empty() && written > 0) return damaged(name, std::to_string(size) + " unpacked bytes", "more");
    out = out.subspan(written);
  }
  if (code != Z_STREAM_END) {
    const std::string why = stream.msg != nullptr ? stream.msg : "an end before its time";
    return damaged(name, "gzip data", why + " after " + std::to_string(size - out.size()) + " unpacked bytes");
  }
  if (!out.empty()) {
    return damaged(name, std::to_string(size) + " unpacked bytes", std::to_string(size - out.size()));
  }
  if (!bytes.empty()) {
    return damaged(name, "one gzip member", std::to_string(bytes.size()) + " more bytes after it");
  }
  return std::move(*buffer).seal();
}

}  // namespace motley::data
