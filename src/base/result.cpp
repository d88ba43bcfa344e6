#include "motley/result.h"

#include <cstdio>

#include "base/assert.h"

namespace motley {

std::string_view to_word(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::usage:
      return "usage";
    case ErrorCode::input:
      return "input";
    case ErrorCode::io:
      return "io";
    case ErrorCode::disk_full:
      return "disk-full";
    case ErrorCode::network:
      return "network";
    case ErrorCode::busy:
      return "busy";
    case ErrorCode::refused:
      return "refused";
    case ErrorCode::protocol:
      return "protocol";
    case ErrorCode::mismatch:
      return "mismatch";
    case ErrorCode::memory:
      return "memory";
    case ErrorCode::diverged:
      return "diverged";
    case ErrorCode::interrupted:
      return "interrupted";
    case ErrorCode::internal:
      return "internal";
  }
  return "internal";
}

int exit_status(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::usage:
    case ErrorCode::input:
      return 2;
    case ErrorCode::interrupted:
      return 130;
    default:
      return 1;
  }
}

void assertion_failed(const char* expression, const char* file, int line) noexcept {
  std::fprintf(stderr, "motley: bug: %s does not hold at %s:%d\n", expression, file, line);
  std::fflush(stderr);
  std::abort();
}

}  // namespace motley
