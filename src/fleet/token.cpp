#include "fleet/token.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/little_endian.h"

namespace motley::fleet {
namespace {

constexpr std::string_view kPrefix = JoinToken::kPrefix;
constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::string_view kWhiteSpace = " \t\r\n\v\f";
constexpr const char* kCopyAgain =
    "copy it again, whole: from \"motley1.\" to the last letter, as the coordinator prints it";

// flags:8 | run:64 | id:64 | expires:64 | spki:256 | secret:128 | port:16 | count:8, then the addresses, then CRC:32.
constexpr std::size_t kFixedBytes = 1 + 8 + 8 + 8 + 32 + 16 + 2 + 1;
constexpr std::size_t kCrcBytes = 4;
constexpr std::byte kPlaintextFlag{1};
constexpr std::size_t kBodyBytesMax =
    kFixedBytes + JoinToken::kAddressesMax * (1 + JoinToken::kAddressBytesMax) + kCrcBytes;
static_assert(kPrefix.size() + (kBodyBytesMax * 4 + 2) / 3 <= JoinToken::kTextBytesMax);
static_assert(JoinToken::kAddressBytesMax <= 255 && JoinToken::kAddressesMax <= 255);

template <class T>
void append_le(std::vector<std::byte>& out, T value) {
  out.resize(out.size() + sizeof(T));
  store_le(out.data() + out.size() - sizeof(T), value);
}

void append(std::vector<std::byte>& out, std::span<const std::byte> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

std::string to_base64url(std::span<const std::byte> bytes) {
  std::string out;
  out.reserve((bytes.size() * 4 + 2) / 3);
  std::uint32_t bits = 0;
  unsigned held = 0;
  for (const std::byte byte : bytes) {
    bits = (bits << 8) | std::to_integer<std::uint32_t>(byte);
    for (held += 8; held >= 6; held -= 6) out.push_back(kAlphabet[(bits >> (held - 6)) & 63]);
  }
  if (held > 0) out.push_back(kAlphabet[(bits << (6 - held)) & 63]);
  return out;
}

// Nothing if a letter is foreign, the length impossible, or unused bits are set (each text has one meaning).
std::optional<std::vector<std::byte>> from_base64url(std::string_view text) {
  std::vector<std::byte> out;
  out.reserve(text.size() * 3 / 4);
  std::uint32_t bits = 0;
  unsigned held = 0;
  for (const char letter : text) {
    const std::size_t value = kAlphabet.find(letter);
    if (value == std::string_view::npos) return std::nullopt;
    bits = (bits << 6) | static_cast<std::uint32_t>(value);
    held += 6;
    if (held >= 8) {
      held -= 8;
      out.push_back(static_cast<std::byte>((bits >> held) & 255));
    }
  }
  if (held >= 6 || (bits & ((1U << held) - 1)) != 0) return std::nullopt;
  return out;
}

Error damaged(std::string what) { return {ErrorCode::input, "join token: " + std::move(what), kCopyAgain}; }

bool all_digits(std::string_view text) noexcept {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// What somebody may have pasted instead. The text itself is never repeated: it may hold a secret.
std::string_view looks_like(std::string_view text) noexcept {
  if (text.find(kPrefix) != std::string_view::npos) {
    return text.starts_with('{') ? "a whole JSON line with a token in it; the token is the value of \"join\""
                                 : "a token with other words or quotes around it";
  }
  if (text.starts_with('{')) return "a line of JSON";
  if (text.starts_with("-----BEGIN")) return "a PEM key or certificate";
  if (text.find("://") != std::string_view::npos) return "a web address";
  if (text.starts_with('-')) return "a command-line flag";
  if (text.starts_with('<') || text == "TOKEN") return "the placeholder of an example";
  if (text.find_first_of(kWhiteSpace) != std::string_view::npos) return "several words";
  for (const std::string_view ending : {".toml", ".py", ".pt", ".txt", ".token"}) {
    if (text.ends_with(ending)) return "a file name; if the token is in that file, use --token-file";
  }
  if (text.find_first_of("/\\~") != std::string_view::npos)
    return "a path; if the token is in that file, use --token-file";
  const std::size_t colon = text.rfind(':');
  if (colon != std::string_view::npos && all_digits(text.substr(colon + 1))) {
    return "an address and a port; an address alone is not enough to join";
  }
  if (text.size() <= 253 && std::count(text.begin(), text.end(), '.') >= 1) return "an address or a host name";
  return "something else";
}

Error not_a_token(std::string_view text) {
  const bool wrong_case = text.size() >= kPrefix.size() &&
                          std::equal(kPrefix.begin(), kPrefix.end(), text.begin(), [](char want, char have) {
                            return want == have || (have >= 'A' && have <= 'Z' && want == have - 'A' + 'a');
                          });
  if (wrong_case) return damaged("expected \"motley1.\" in small letters, found capitals");
  return {ErrorCode::input,
          "join token: expected a word that starts with \"motley1.\", found what looks like " +
              std::string(looks_like(text)),
          "pass the token that `motley train` prints beside \"motley join\" on the first machine"};
}

Status check_prefix(std::string_view text) {
  if (text.empty()) {
    return Error{ErrorCode::input, "join token: expected a word that starts with \"motley1.\", found nothing",
                 "pass the token that `motley train` prints beside \"motley join\" on the first machine"};
  }
  if (text.starts_with(kPrefix)) return {};
  const std::string_view word = "motley";
  const std::size_t dot = text.find('.');
  if (text.starts_with(word) && dot != std::string_view::npos) {
    const std::string_view version = text.substr(word.size(), dot - word.size());
    if (all_digits(version) && version.front() != '0' && version.size() <= 4) {
      return Error{ErrorCode::input,
                   "join token: expected version 1, found version " + std::string(version) + ", from a newer motley",
                   "install the same version of motley on both machines"};
    }
  }
  return not_a_token(text);
}

class BodyReader {
 public:
  explicit BodyReader(std::span<const std::byte> bytes) noexcept : rest_(bytes) {}
  [[nodiscard]] std::size_t left() const noexcept { return rest_.size(); }
  std::span<const std::byte> take(std::size_t count) noexcept {
    MOTLEY_ASSERT(count <= rest_.size());
    const auto taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }
  template <class T>
  T integer() noexcept {
    return load_le<T>(take(sizeof(T)).data());
  }
  template <std::size_t N>
  void copy_to(std::array<std::uint8_t, N>& out) noexcept {
    std::transform(rest_.begin(), rest_.begin() + N, out.begin(), std::to_integer<std::uint8_t>);
    take(N);
  }

 private:
  std::span<const std::byte> rest_;
};

Status read_addresses(BodyReader& in, JoinToken& token) {
  const auto count = in.integer<std::uint8_t>();
  if (count == 0 || count > JoinToken::kAddressesMax) {
    return damaged("expected 1 to " + std::to_string(JoinToken::kAddressesMax) + " addresses, found " +
                   std::to_string(count));
  }
  for (unsigned i = 0; i < count; ++i) {
    const std::size_t size = in.left() > 0 ? in.integer<std::uint8_t>() : 0;
    if (size == 0 || size > JoinToken::kAddressBytesMax || size > in.left()) {
      return damaged("expected an address of 1 to " + std::to_string(JoinToken::kAddressBytesMax) +
                     " letters, found a length of " + std::to_string(size));
    }
    const auto bytes = in.take(size);
    std::string address(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const bool printable = std::all_of(address.begin(), address.end(), [](char c) { return c > ' ' && c <= '~'; });
    if (!printable) return damaged("expected an address of printable letters, found others");
    token.addresses.push_back(std::move(address));
  }
  if (in.left() > 0) {
    return damaged("expected the end after the addresses, found " + std::to_string(in.left()) + " more bytes");
  }
  return {};
}

Result<JoinToken> parse_body(std::span<const std::byte> body) {
  BodyReader in(body);
  JoinToken token;
  const std::byte flags{in.integer<std::uint8_t>()};
  if ((flags & ~kPlaintextFlag) != std::byte{0}) {
    return Error{ErrorCode::input,
                 "join token: expected flags 0 or 1, found " + std::to_string(std::to_integer<unsigned>(flags)) +
                     ", from a newer motley",
                 "install the same version of motley on both machines"};
  }
  token.plaintext = flags == kPlaintextFlag;
  token.run = in.integer<std::uint64_t>();
  token.id = in.integer<std::uint64_t>();
  token.expires_unix_s = in.integer<std::uint64_t>();
  in.copy_to(token.spki);
  in.copy_to(token.secret);
  token.port = in.integer<std::uint16_t>();
  if (token.port == 0) return damaged("expected a port from 1 to 65535, found 0");
  if (Status addresses = read_addresses(in, token); !addresses) return std::move(addresses).error();
  return token;
}

}  // namespace

std::string to_text(const JoinToken& token) {
  MOTLEY_ASSERT(token.addresses.size() <= JoinToken::kAddressesMax);
  std::vector<std::byte> body;
  body.reserve(kBodyBytesMax);
  append_le<std::uint8_t>(body, token.plaintext ? std::to_integer<std::uint8_t>(kPlaintextFlag) : 0);
  append_le<std::uint64_t>(body, token.run);
  append_le<std::uint64_t>(body, token.id);
  append_le<std::uint64_t>(body, token.expires_unix_s);
  append(body, std::as_bytes(std::span(token.spki)));
  append(body, std::as_bytes(std::span(token.secret)));
  append_le<std::uint16_t>(body, token.port);
  append_le<std::uint8_t>(body, static_cast<std::uint8_t>(token.addresses.size()));
  for (const std::string& address : token.addresses) {
    MOTLEY_ASSERT(!address.empty() && address.size() <= JoinToken::kAddressBytesMax);
    append_le<std::uint8_t>(body, static_cast<std::uint8_t>(address.size()));
    append(body, as_bytes(address));
  }
  append_le<std::uint32_t>(body, crc32c(body));
  MOTLEY_ASSERT(body.size() <= kBodyBytesMax);
  return std::string(kPrefix) + to_base64url(body);
}

Result<JoinToken> parse_token(std::string_view text) {
  const std::size_t start = std::min(text.find_first_not_of(kWhiteSpace), text.size());
  text.remove_prefix(start);
  text = text.substr(0, text.find_last_not_of(kWhiteSpace) + 1);
  if (Status prefix = check_prefix(text); !prefix) return std::move(prefix).error();
  if (text.size() > JoinToken::kTextBytesMax) {
    return damaged("expected at most " + std::to_string(JoinToken::kTextBytesMax) + " letters, found " +
                   std::to_string(text.size()));
  }
  text.remove_prefix(kPrefix.size());
  if (const std::size_t at = text.find_first_not_of(kAlphabet); at != std::string_view::npos) {
    const bool broken = kWhiteSpace.find(text[at]) != std::string_view::npos;
    return damaged("expected letters, digits, '-' and '_' only, found " +
                   std::string(broken ? "a space or line break" : "another character") + " at place " +
                   std::to_string(kPrefix.size() + at + 1));
  }
  const auto bytes = from_base64url(text);
  if (!bytes || bytes->size() < kFixedBytes + kCrcBytes) {
    return damaged("it is cut short or has a letter too many (" + std::to_string(kPrefix.size() + text.size()) +
                   " letters)");
  }
  const auto body = std::span(*bytes).first(bytes->size() - kCrcBytes);
  if (load_le<std::uint32_t>(bytes->data() + body.size()) != crc32c(body)) {
    return damaged("its checksum is wrong, so at least one letter is");
  }
  return parse_body(body);
}

std::vector<std::byte> proof_input(std::string_view role, const std::array<std::uint8_t, 32>& exporter,
                                   const std::array<std::uint8_t, 32>& spki_head,
                                   const std::array<std::uint8_t, 32>& spki_joiner, std::uint64_t run,
                                   std::uint64_t token_id, std::uint32_t protocol) {
  std::vector<std::byte> out;
  const auto piece = [&out](std::span<const std::byte> bytes) {
    append_le<std::uint32_t>(out, static_cast<std::uint32_t>(bytes.size()));
    append(out, bytes);
  };
  const auto number = [&out](auto value) {
    append_le<std::uint32_t>(out, sizeof(value));
    append_le(out, value);
  };
  piece(std::as_bytes(std::span(role.data(), role.size())));
  piece(std::as_bytes(std::span(exporter)));
  piece(std::as_bytes(std::span(spki_head)));
  piece(std::as_bytes(std::span(spki_joiner)));
  number(run);
  number(token_id);
  number(protocol);
  return out;
}

}  // namespace motley::fleet
