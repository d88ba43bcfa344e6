#include "runtime/head/pairing_rule.h"

#include "base/assert.h"

namespace motley::runtime {
namespace {

void take(CodeState& state, const CodeMade& made, std::uint64_t unix_s) {
  if (state.end == CodeEnd::guessed) state.quiet_until_unix_s = unix_s + kGuessedCodeEverySeconds;
  state.end = CodeEnd::none;
  state.until_unix_s = made.until_unix_s;
  state.wrong = 0;
}

void take(CodeState& state, CodeUsed /*event*/, std::uint64_t unix_s) {
  MOTLEY_ASSERT(state.good(unix_s));
  state.end = CodeEnd::used;
}

void take(CodeState& state, CodeWrong /*event*/, std::uint64_t unix_s) {
  MOTLEY_ASSERT(state.good(unix_s));
  if (++state.wrong == kWrongCodesMax) state.end = CodeEnd::guessed;
}

void take(CodeState& state, CodeTick /*event*/, std::uint64_t unix_s) {
  if (state.end == CodeEnd::none && !state.good(unix_s)) state.end = CodeEnd::old;
}

// Nothing is waited for longer, also where somebody has set the clock back.
bool is_quiet(const CodeState& state, std::uint64_t unix_s) {
  return unix_s < state.quiet_until_unix_s && state.quiet_until_unix_s - unix_s <= kGuessedCodeEverySeconds;
}

}  // namespace

CodeDecision decide(CodeState state, const CodeEvent& event, std::uint64_t unix_s) {
  std::visit([&](const auto& one) { take(state, one, unix_s); }, event);
  const bool waits = state.end == CodeEnd::guessed && is_quiet(state, unix_s);
  return {state, state.end != CodeEnd::none && !waits};
}

}  // namespace motley::runtime
