#include "observe/screen_text.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/format.h"

namespace motley::observe {
namespace {

std::string repeat(std::string_view symbol, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += symbol;
  return out;
}

}  // namespace

std::string progress_bar(double fraction, std::size_t width) {
  const double clamped = std::isfinite(fraction) ? std::clamp(fraction, 0.0, 1.0) : 0.0;
  const auto halves = static_cast<std::size_t>(std::lround(clamped * 2 * static_cast<double>(width)));
  const std::size_t full = halves / 2;
  const bool half = halves % 2 == 1;
  return repeat("━", full) + (half ? "╸" : "") + repeat("─", width - full - (half ? 1 : 0));
}

std::string sparkline(std::span<const double> values, std::size_t width) {
  constexpr std::array<std::string_view, 8> kHeights{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const std::size_t columns = std::min(width, values.size());
  if (columns == 0) return {};
  std::string out;
  std::array<double, 256> means{};
  const std::size_t shown = std::min(columns, means.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const std::size_t first = i * values.size() / shown;
    const std::size_t last = std::max(first + 1, (i + 1) * values.size() / shown);
    double sum = 0;
    for (std::size_t j = first; j < last; ++j) sum += values[j];
    means[i] = sum / static_cast<double>(last - first);
  }
  const auto [low, high] = std::minmax_element(means.begin(), means.begin() + static_cast<std::ptrdiff_t>(shown));
  const double range = *high - *low;
  for (std::size_t i = 0; i < shown; ++i) {
    const double height = range > 0 ? (means[i] - *low) / range : 0;
    out += kHeights[std::isfinite(height) ? std::min<std::size_t>(7, static_cast<std::size_t>(height * 8)) : 7];
  }
  return out;
}

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  const auto total = static_cast<long long>(std::llround(std::min(seconds, 1e9)));
  if (total < 60) return formatted("%lld s", total);
  if (total < 3600) return formatted("%lld min %02lld s", total / 60, total % 60);
  return formatted("%lld h %02lld min", total / 3600, total % 3600 / 60);
}

std::string count_text(double value) {
  if (value < 1000) return formatted("%.0f", value);
  if (value < 1e6) return formatted("%.1f k", value / 1e3);
  return formatted("%.2f M", value / 1e6);
}

std::string fit(std::string_view text, std::size_t columns) {
  std::size_t used = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool starts_symbol = (static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U;
    if (starts_symbol && used++ == columns) return std::string(text.substr(0, i));
  }
  return std::string(text);
}

}  // namespace motley::observe
