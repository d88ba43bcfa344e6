#include "blocks/manifest.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <utility>

#include "base/hex.h"
#include "wire/limits.h"

namespace motley::blocks {
namespace {

constexpr std::uint64_t kSetBytesMax = std::uint64_t{1} << 50;
constexpr std::size_t kNameBytesMax = 1024, kPartBytesMax = 255, kDepthMax = 32;
constexpr std::string_view kNotInNames = "\\:<>\"|?*";
constexpr std::array<std::string_view, 6> kOfWindows{"con", "prn", "aux", "nul", "conin$", "conout$"};

std::uint64_t blocks_of(std::uint64_t size) noexcept {
  return size / wire::kBlockBytesMax + (size % wire::kBlockBytesMax != 0 ? 1 : 0);
}

char folded(char letter) noexcept { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter; }

std::string folded(std::string_view text) {
  std::string low(text);
  std::ranges::transform(low, low.begin(), [](char letter) { return folded(letter); });
  return low;
}

/// Bytes of the letter that begins there, as UTF-8 has them; 0: none does.
std::size_t letter_at(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  const std::size_t count = first < 0x80   ? 1
                            : first < 0xc2 ? 0
                            : first < 0xe0 ? 2
                            : first < 0xf0 ? 3
                            : first < 0xf5 ? 4
                                           : 0;
  if (count == 0 || count > text.size()) return 0;
  for (std::size_t i = 1; i < count; ++i)
    if ((byte(i) & 0xc0U) != 0x80) return 0;
  const bool elsewhere = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f) ||
                         (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f);
  return elsewhere ? 0 : count;
}

bool is_of_windows(std::string_view part) {
  std::string stem = folded(part.substr(0, part.find('.')));
  while (stem.ends_with(' ')) stem.pop_back();
  if (std::ranges::find(kOfWindows, stem) != kOfWindows.end()) return true;
  const bool port = stem.starts_with("com") || stem.starts_with("lpt");
  const std::string_view rest = port ? std::string_view(stem).substr(3) : std::string_view();
  return (rest.size() == 1 && rest[0] >= '0' && rest[0] <= '9') || rest == "\u00b9" || rest == "\u00b2" ||
         rest == "\u00b3";
}

std::string_view fault(std::string_view part) {
  if (part.empty() || part == "." || part == "..") return "leads elsewhere";
  if (part.size() > kPartBytesMax) return "is too long";
  for (std::size_t at = 0; at < part.size();) {
    const std::size_t count = letter_at(part.substr(at));
    if (count == 0) return "is no text";
    const char letter = part[at];
    const bool control = count == 1 && (static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f);
    if (control || (count == 1 && kNotInNames.find(letter) != std::string_view::npos))
      return "has a character that names on Windows cannot have";
    at += count;
  }
  if (part.back() == '.' || part.back() == ' ' || is_of_windows(part)) return "cannot be a name on Windows";
  return {};
}

Error unfit(const std::string& what) {
  return {ErrorCode::input, what, "rename it: a set of files has to fit on every system"};
}

/// In one form only: whatever is not as it should be ends it.
class Reader {
 public:
  explicit Reader(std::string_view text) : left_(text) {}
  bool skip(std::string_view word) {
    if (!left_.starts_with(word)) return false;
    left_.remove_prefix(word.size());
    return true;
  }
  bool text(std::string& out) {
    if (!skip("\"")) return false;
    const std::size_t end = left_.find_first_of("\"\\");
    if (end == std::string_view::npos || left_[end] != '"') return false;
    out = left_.substr(0, end);
    left_.remove_prefix(end + 1);
    return true;
  }
  bool number(std::uint64_t& out) {
    const auto [end, failed] = std::from_chars(left_.data(), left_.data() + left_.size(), out);
    if (failed != std::errc{} || (left_[0] == '0' && end != left_.data() + 1)) return false;
    left_.remove_prefix(static_cast<std::size_t>(end - left_.data()));
    return true;
  }
  [[nodiscard]] bool ended() const noexcept { return left_.empty(); }

 private:
  std::string_view left_;
};

bool read_file(Reader& in, Listed& file) {
  std::string hashes;
  if (!in.skip("[") || !in.text(file.name) || !in.skip(",") || !in.number(file.size) || !in.skip(",") ||
      !in.text(hashes) || !in.skip("]"))
    return false;
  if (file.size > kSetBytesMax || hashes.size() != 2 * sizeof(Hash) * blocks_of(file.size)) return false;
  file.hashes.resize(hashes.size() / 2);
  return folded(hashes) == hashes && from_hex(hashes, file.hashes);
}

bool read(Reader& in, Manifest& manifest) {
  if (!in.skip("{\"motley\":1,\"name\":") || !in.text(manifest.name) || !in.skip(",\"directory\":true,\"files\":["))
    return false;
  do {
    if (!read_file(in, manifest.files.emplace_back())) return false;
  } while (in.skip(","));
  return in.skip("]}") && in.ended() && manifest.size() <= kSetBytesMax;
}

}  // namespace

Hash Listed::hash(std::size_t block) const noexcept {
  Hash found;
  std::copy_n(hashes.begin() + static_cast<std::ptrdiff_t>(block * sizeof(Hash)), sizeof(Hash), found.begin());
  return found;
}

std::size_t Listed::bytes(std::size_t block) const noexcept {
  return static_cast<std::size_t>(std::min<std::uint64_t>(wire::kBlockBytesMax, size - block * wire::kBlockBytesMax));
}

std::uint64_t Manifest::size() const noexcept {
  std::uint64_t sum = 0;
  for (const Listed& file : files) sum = std::min(sum + file.size, kSetBytesMax + 1);
  return sum;
}

std::string to_text(const Manifest& manifest) {
  std::string text = "{\"motley\":1,\"name\":\"" + manifest.name + "\",\"directory\":true,\"files\":[";
  for (const Listed& file : manifest.files) {
    if (&file != manifest.files.data()) text += ',';
    text += "[\"" + file.name + "\"," + std::to_string(file.size) + ",\"" + to_hex(file.hashes) + "\"]";
  }
  return text + "]}";
}

Result<Manifest> parse_manifest(std::string_view text) {
  Manifest manifest;
  Reader in(text);
  if (text.size() > wire::kManifestBytesMax || !read(in, manifest)) {
    return Error{ErrorCode::protocol, "what the head sent is no list of files",
                 "install the same version of motley on both machines"};
  }
  if (Status named = check_names(manifest); !named) return named.error();
  return manifest;
}

Status check_names(const Manifest& manifest) {
  if (const std::string_view wrong = fault(manifest.name);
      !wrong.empty() || manifest.name.find('/') != std::string::npos)
    return unfit("the name of a set of files " + std::string(wrong.empty() ? "leads elsewhere" : wrong));
  std::map<std::string, std::pair<std::string, bool>>
      seen;  // by folded path: what stands there, and whether it is a file
  for (const Listed& file : manifest.files) {
    if (file.name.size() > kNameBytesMax)
      return unfit("a name of " + std::to_string(file.name.size()) + " bytes is too long");
    std::size_t depth = 0;
    for (std::size_t at = 0; at <= file.name.size();) {
      const std::size_t end = std::min(file.name.find('/', at), file.name.size());
      if (const std::string_view wrong = fault(std::string_view(file.name).substr(at, end - at)); !wrong.empty())
        return unfit("a name of a set of files " + std::string(wrong));
      if (++depth > kDepthMax) return unfit("a name of a set of files is too long");
      const std::string here = file.name.substr(0, end);
      const bool is_file = end == file.name.size();
      const auto [other, fresh] = seen.try_emplace(folded(here), here, is_file);
      if (!fresh && (is_file || other->second != std::pair(here, false)))
        return unfit("two names of a set of files are the same where upper and lower case do not count");
      at = end + 1;
    }
  }
  return {};
}

}  // namespace motley::blocks
