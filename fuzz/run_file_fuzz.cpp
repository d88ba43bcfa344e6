// RUN.toml: whatever the text, an answer; and what is accepted round-trips.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "runtime/config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace motley::runtime;
  const auto config = parse_config({reinterpret_cast<const char*>(data), size}, "run.toml");
  if (!config) return 0;
  const auto again = parse_config(to_toml(*config), "again");
  if (!again || to_toml(*again) != to_toml(*config)) std::abort();
  return 0;
}
