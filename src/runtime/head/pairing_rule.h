#pragma once
// When the code that machines pair by is good, and when it is time for another one. Pure.
//
// A code is good for one machine, for ten minutes, and until five wrong ones were tried. Wrong ones bring another code
// at most once a minute. So nobody has more than five guesses a minute and five for each code that ended otherwise: in
// an hour some 330 of a million, one chance in 3,000. A head's display gets six lines a minute of it, its processor
// five exchanges that end and the first half of as many as there are TLS handshakes (50 a second).

#include <cstdint>
#include <variant>

namespace motley::runtime {

inline constexpr std::uint64_t kCodeSeconds = 600;
inline constexpr unsigned kWrongCodesMax = 5;
inline constexpr std::uint64_t kGuessedCodeEverySeconds = 60;

/// What has become of a code.
enum class CodeEnd : std::uint8_t { none, used, old, guessed };

struct CodeState {
  CodeEnd end = CodeEnd::old;  // none: it is good until then
  std::uint64_t until_unix_s = 0;
  unsigned wrong = 0;                    // that were tried
  std::uint64_t quiet_until_unix_s = 0;  // wrong ones bring no other code before

  [[nodiscard]] bool good(std::uint64_t unix_s) const noexcept { return end == CodeEnd::none && unix_s < until_unix_s; }
};

/// There is another code, by this head or by somebody else.
struct CodeMade {
  std::uint64_t until_unix_s = 0;
};
struct CodeUsed {};
struct CodeWrong {};
struct CodeTick {};
using CodeEvent = std::variant<CodeMade, CodeUsed, CodeWrong, CodeTick>;

struct CodeDecision {
  CodeState state{};
  bool make_another = false;
};

/// REQUIRES for CodeUsed and CodeWrong that the code is good.
CodeDecision decide(CodeState state, const CodeEvent& event, std::uint64_t unix_s);

}  // namespace motley::runtime
