#pragma once
// Messages of DNS, as much of them as finding a service on the local network takes (RFC 1035, 6762, 6763): questions,
// and records of the kinds PTR, SRV, TXT and A. Bytes from anybody on the network: every length is bounded. Pure.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace motley::discovery {

inline constexpr std::size_t kMessageBytesMax = 9000;  // RFC 6762, 17
inline constexpr std::size_t kLabelBytesMax = 63;
inline constexpr std::size_t kNameBytesMax = 255;  // with the lengths of its labels
inline constexpr std::size_t kRecordsMax = 128;    // of a message, its questions too
inline constexpr std::size_t kTextsMax = 16;       // of a TXT record

enum class Kind : std::uint16_t { a = 1, ptr = 12, txt = 16, srv = 33, any = 255 };

/// From the host to the root, which is left out.
using Name = std::vector<std::string>;
/// Letters of ASCII in either case are the same.
bool same_name(const Name& a, const Name& b);

struct Question {
  Name name{};
  Kind kind = Kind::any;
  bool operator==(const Question&) const = default;
};
struct Record {
  Name name{};
  Kind kind = Kind::any;  // any: one of a kind that nobody here asks for
  bool unique = false;    // nobody else has records of this name and kind
  std::uint32_t seconds = 0;
  Name target{};                     // PTR, SRV
  std::uint16_t port = 0;            // SRV
  std::vector<std::string> texts{};  // TXT
  std::array<std::uint8_t, 4> ip{};  // A
  bool operator==(const Record&) const = default;
};
struct Message {
  std::uint16_t id = 0;
  bool response = false;
  std::vector<Question> questions{};
  std::vector<Record> answers{};
  std::vector<Record> additional{};
  bool operator==(const Message&) const = default;
};

/// Nothing where the bytes make no sense, or are no question and no answer.
std::optional<Message> parse(std::span<const std::byte> bytes);
/// REQUIRES labels of 1 to kLabelBytesMax bytes, names of kNameBytesMax, texts of 255 bytes each at the most.
std::vector<std::byte> write(const Message& message);

}  // namespace motley::discovery
