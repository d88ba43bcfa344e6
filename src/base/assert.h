#pragma once
// MOTLEY_ASSERT stays on in release: a bug stops the process before it can corrupt a run.

namespace motley {
[[noreturn]] void assertion_failed(const char* expression, const char* file, int line) noexcept;
}  // namespace motley

#define MOTLEY_ASSERT(expression) \
  (static_cast<bool>(expression) ? void(0) : ::motley::assertion_failed(#expression, __FILE__, __LINE__))
