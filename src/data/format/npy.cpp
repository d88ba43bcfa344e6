#include "data/format/npy.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/little_endian.h"

namespace motley::data {
namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr std::size_t kPreambleMin = 10;            // magic 6, version 2, header length 2 (4 from version 2 on)
constexpr std::size_t kHeaderBytesMax = 64U << 10;  // a description of one array; NumPy itself warns above 10,000
constexpr std::size_t kShownBytesMax = 40;

// The header is a Python dictionary literal with the keys descr, fortran_order and shape, in any order.
struct NpyHeader {
  std::string_view descr;
  bool fortran_order = false;
  std::vector<std::uint64_t> shape;
};

class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text), left_(text) {}

  /// Empty, or what was expected.
  std::string parse(NpyHeader& header) {
    bool has_descr = false;
    bool has_order = false;
    bool has_shape = false;
    if (!take('{')) return "'{'";
    while (!take('}')) {
      std::string_view key;
      if (!take_string(key)) return "a quoted key";
      if (!take(':')) return "':'";
      if (key == "descr" && !has_descr) {
        has_descr = true;
        if (!take_string(header.descr)) return "a plain type such as '<f4' (structured types are not supported)";
      } else if (key == "fortran_order" && !has_order) {
        has_order = true;
        header.fortran_order = take_word("True");
        if (!header.fortran_order && !take_word("False")) return "True or False";
      } else if (key == "shape" && !has_shape) {
        has_shape = true;
        if (!take_shape(header.shape)) return "a shape such as (60000, 784)";
      } else {
        return "the keys 'descr', 'fortran_order' and 'shape' once each";
      }
      if (!take(',') && !next_is('}')) return "',' or '}'";
    }
    skip_space();
    if (!left_.empty()) return "nothing but spaces after '}'";
    return has_descr && has_order && has_shape ? "" : "the keys 'descr', 'fortran_order' and 'shape'";
  }

  [[nodiscard]] std::size_t position() const noexcept { return text_.size() - left_.size(); }
  [[nodiscard]] std::string_view rest() const noexcept { return left_; }

 private:
  void skip_space() noexcept {
    while (!left_.empty() && (left_[0] == ' ' || left_[0] == '\n' || left_[0] == '\t')) left_.remove_prefix(1);
  }
  bool next_is(char c) noexcept {
    skip_space();
    return left_.starts_with(c);
  }
  bool take(char c) noexcept {
    if (!next_is(c)) return false;
    left_.remove_prefix(1);
    return true;
  }
  bool take_word(std::string_view word) noexcept {
    skip_space();
    if (!left_.starts_with(word)) return false;
    left_.remove_prefix(word.size());
    return true;
  }
  bool take_string(std::string_view& out) noexcept {
    skip_space();
    if (left_.empty() || (left_[0] != '\'' && left_[0] != '"')) return false;
    const std::size_t end = left_.find(left_[0], 1);
    if (end == std::string_view::npos) return false;
    out = left_.substr(1, end - 1);
    left_.remove_prefix(end + 1);
    return true;
  }
  bool take_shape(std::vector<std::uint64_t>& shape) {
    if (!take('(')) return false;
    while (!take(')')) {
      skip_space();
      std::uint64_t extent = 0;
      const auto [end, failed] = std::from_chars(left_.data(), left_.data() + left_.size(), extent);
      if (failed != std::errc() || shape.size() == kRankMax) return false;
      left_.remove_prefix(static_cast<std::size_t>(end - left_.data()));
      static_cast<void>(take_word("L"));  // Python 2 wrote long integers so
      shape.push_back(extent);
      if (!take(',') && !next_is(')')) return false;
    }
    return true;
  }

  std::string_view text_, left_;
};

std::string shown(std::string_view text) {
  std::string out = "'";
  for (const char c : text.substr(0, kShownBytesMax)) out += c >= ' ' && c <= '~' ? c : '?';
  return out + (text.size() > kShownBytesMax ? "...'" : "'");
}

std::optional<DType> dtype_of(std::string_view descr) noexcept {
  if (descr == "<f4") return DType::f32;
  if (descr == "<f8") return DType::f64;
  if (descr == "<i4") return DType::i32;
  if (descr == "<i8") return DType::i64;
  if (descr == "|u1" || descr == "<u1") return DType::u8;
  if (descr == "|b1" || descr == "<b1") return DType::boolean;
  return std::nullopt;
}

struct Sections {
  std::size_t header_at;
  std::string_view header;
  std::span<const std::byte> elements;
};

Result<Sections> cut(std::span<const std::byte> bytes, const std::string& name) {
  if (!looks_like_npy(bytes) || bytes.size() < kPreambleMin) {
    return damaged(name, "an npy file (bytes 93 'NUMPY', version, header length)",
                   bytes.size() < kPreambleMin ? std::to_string(bytes.size()) + " bytes" : "other bytes");
  }
  const auto major = std::to_integer<unsigned>(bytes[6]);
  if (major < 1 || major > 3) return damaged(name, "npy version 1, 2 or 3", "version " + std::to_string(major));
  const std::size_t header_at = major == 1 ? 10 : 12;
  if (bytes.size() < header_at) {
    return damaged(name, "12 bytes before the header", std::to_string(bytes.size()) + " bytes");
  }
  const std::size_t length =
      major == 1 ? load_le<std::uint16_t>(&bytes[8]) : std::size_t{load_le<std::uint32_t>(&bytes[8])};
  if (length > kHeaderBytesMax || length > bytes.size() - header_at) {
    return damaged(name,
                   "a header that fits the file (" + std::to_string(bytes.size()) + " bytes) and " +
                       std::to_string(kHeaderBytesMax) + " bytes",
                   "a header length of " + std::to_string(length) + " at byte 8");
  }
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  return Sections{header_at, std::string_view(text + header_at, length), bytes.subspan(header_at + length)};
}

}  // namespace

bool looks_like_npy(std::span<const std::byte> bytes) noexcept {
  return bytes.size() >= kNpyMagic.size() && std::equal(kNpyMagic.begin(), kNpyMagic.end(), bytes.begin(),
                                                        [](char a, auto b) { return static_cast<std::byte>(a) == b; });
}

Result<Array> parse_npy(std::span<const std::byte> bytes, const std::string& name) {
  const Result<Sections> sections = cut(bytes, name);
  if (!sections) return sections.error();
  NpyHeader header;
  HeaderParser parser(sections->header);
  if (const std::string expected = parser.parse(header); !expected.empty()) {
    return damaged(name,
                   expected + " in the npy header at byte " + std::to_string(sections->header_at + parser.position()),
                   shown(parser.rest()));
  }
  const std::optional<DType> dtype = dtype_of(header.descr);
  if (!dtype) {
    return Error{ErrorCode::input,
                 name + ": expected elements of type <f4, <f8, <i4, <i8, |u1 or |b1, found " + shown(header.descr),
                 "convert with numpy: array.astype('<f4') or array.astype('<i8')"};
  }
  if (header.fortran_order) {
    return Error{ErrorCode::input, name + ": expected an array in C order, found Fortran order",
                 "save numpy.ascontiguousarray(array) instead"};
  }
  Array array{*dtype, std::move(header.shape), sections->elements};
  const std::optional<std::uint64_t> wanted = checked_bytes(array.shape, bytes_of(array.dtype));
  if (wanted != array.bytes.size()) {
    return damaged(name,
                   (wanted ? std::to_string(*wanted) : "too many") + " bytes of elements for shape " +
                       to_text(array.shape) + " of " + to_text(array.dtype),
                   std::to_string(array.bytes.size()));
  }
  return array;
}

}  // namespace motley::data
