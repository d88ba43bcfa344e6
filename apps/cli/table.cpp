#include "table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace motley::cli {

void print_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<int> widths(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], static_cast<int>(row[i].size()));
  }
  for (const auto& row : rows) {
    std::printf("%-*s", widths[0], row[0].c_str());
    for (std::size_t i = 1; i < row.size(); ++i) std::printf("  %*s", widths[i], row[i].c_str());
    std::printf("\n");
  }
}

double rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  // Three decimals, and more where these would not be three significant digits. 1e300 at most, lest the scale overflow.
  const double digits = std::clamp(2 - std::floor(std::log10(std::abs(value))), 3.0, 300.0);
  const double scale = std::pow(10, digits);
  return std::abs(value) < 1e12 ? std::round(value * scale) / scale : value;
}

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 10 ? "%.2f" : value < 100 ? "%.1f" : "%.0f", value);
  return text;
}

}  // namespace motley::cli
