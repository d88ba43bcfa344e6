#include "sim/trace.h"

#include <array>
#include <cstdio>

namespace motley::sim {

// FNV-1a over whole words: fast, and good enough to tell two runs apart.
void Trace::mix(std::uint64_t value) noexcept {
  hash_ = (hash_ ^ value) * 0x100000001B3U;
  hash_ ^= hash_ >> 29;
}

void Trace::note(Time now, std::string_view who, std::string_view what, std::uint64_t a, std::uint64_t b) {
  mix(static_cast<std::uint64_t>(now.count()));
  for (const std::string_view text : {who, what}) {
    for (const char c : text) mix(static_cast<unsigned char>(c));
  }
  mix(a);
  mix(b);
  if (!print_) return;
  std::array<char, 48> stamp{};
  std::snprintf(stamp.data(), stamp.size(), "%12.6f  ", seconds(now));
  std::string line(stamp.data());
  line += who;
  line.append(who.size() < 10 ? 10 - who.size() : 1, ' ');
  line += what;
  if (a != 0 || b != 0) line.append(" ").append(std::to_string(a));
  if (b != 0) line.append(" ").append(std::to_string(b));
  print_(line);
}

}  // namespace motley::sim
