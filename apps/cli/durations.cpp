#include "durations.h"

#include <charconv>
#include <cstdint>

namespace motley::cli {
namespace {

constexpr std::int64_t kDay = 86400;
constexpr std::int64_t kLongest = 3650 * kDay;

std::int64_t seconds_of(char unit) {
  switch (unit) {
    case 's':
      return 1;
    case 'm':
      return 60;
    case 'h':
      return 3600;
    case 'd':
      return kDay;
    default:
      return 0;
  }
}

}  // namespace

std::optional<Duration> parse_duration(const std::string& text) {
  if (text.size() < 2) return std::nullopt;
  std::int64_t count = 0;
  const char* const end = text.data() + text.size() - 1;
  const auto [stopped, problem] = std::from_chars(text.data(), end, count);
  const std::int64_t unit = seconds_of(text.back());
  if (problem != std::errc{} || stopped != end || unit == 0 || count < 1 || count > kLongest / unit)
    return std::nullopt;
  return std::chrono::seconds(count * unit);
}

CLI::Option* add_expires(CLI::App& command, std::optional<Duration>& good_for) {
  return command
      .add_option_function<std::string>(
          "--expires", [&good_for](const std::string& text) { good_for = parse_duration(text); },
          "TIME for which the token lets new machines in, as 90s, 30m, 12h or 7d (default: as long as the run)")
      ->check(CLI::Validator(
          [](const std::string& text) {
            if (parse_duration(text)) return std::string();
            return "expected a time as 90s, 30m, 12h or 7d, found '" + text + "'";
          },
          ""));
}

}  // namespace motley::cli
