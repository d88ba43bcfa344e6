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

double rounded(double value) { return std::round(value * 1000) / 1000; }

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 10 ? "%.2f" : value < 100 ? "%.1f" : "%.0f", value);
  return text;
}

}  // namespace motley::cli
