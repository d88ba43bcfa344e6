// A run file: whatever the text, an answer; and what is accepted round-trips.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "config/config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace motley;
  const auto config = config::parse({reinterpret_cast<const char*>(data), size}, "run.toml");
  if (!config) return 0;
  const auto again = config::parse(config::to_toml(*config), "again");
  if (!again || config::to_toml(*again) != config::to_toml(*config)) std::abort();
  return 0;
}
