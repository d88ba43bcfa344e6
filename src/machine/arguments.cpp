#include "machine/arguments.h"

#include <cstring>

#ifdef __APPLE__
#include <crt_externs.h>
#endif

namespace motley::machine {
namespace {

struct Arguments {
  int count = 0;
  char** values = nullptr;
};

#ifdef __APPLE__
Arguments own() noexcept { return {*_NSGetArgc(), *_NSGetArgv()}; }
#elif defined(__GLIBC__)
Arguments at_start;  // glibc hands main's arguments to constructors, also to those of a library that is loaded later

__attribute__((constructor)) void keep(int count, char** values) noexcept { at_start = {count, values}; }

Arguments own() noexcept { return at_start; }
#else
Arguments own() noexcept { return {}; }
#endif

}  // namespace

void hide_arguments(std::string_view prefix) noexcept {
  const Arguments arguments = own();
  for (int i = 1; i < arguments.count; ++i) {
    char* const word = arguments.values[i];
    if (word == nullptr || !std::string_view(word).starts_with(prefix)) continue;
    std::memset(word + prefix.size(), 'x', std::strlen(word) - prefix.size());
  }
}

}  // namespace motley::machine
