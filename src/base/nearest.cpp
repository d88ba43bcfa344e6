#include "base/nearest.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace motley {
namespace {

constexpr std::size_t kWordBytesMax = 128;  // the work grows with the square; nobody types more
constexpr std::size_t kPrefixMin = 3;

char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Edits that turn `a` into `b` (optimal string alignment); rows[i % 3][j] is for the first i and j letters.
std::size_t edits(std::string_view a, std::string_view b) {
  std::array<std::vector<std::size_t>, 3> rows;
  for (auto& row : rows) row.resize(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) rows[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    auto& row = rows[i % 3];
    const auto& above = rows[(i - 1) % 3];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = above[j - 1] + (lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], rows[(i - 2) % 3][j - 2] + 1);
    }
  }
  return rows[a.size() % 3][b.size()];
}

bool starts(std::string_view whole, std::string_view part) {
  return part.size() >= kPrefixMin && part.size() < whole.size() &&
         std::equal(part.begin(), part.end(), whole.begin(), [](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace

std::string nearest(std::string_view word, std::span<const std::string_view> known) {
  if (word.empty() || word.size() > kWordBytesMax) return {};
  std::string_view best;
  std::size_t best_edits = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string_view candidate : known) {
    if (candidate.size() > kWordBytesMax) continue;
    const std::size_t distance = edits(word, candidate);
    if (distance >= best_edits || distance >= candidate.size()) continue;
    best = candidate;
    best_edits = distance;
  }
  if (!best.empty()) return std::string(best);
  const auto longer = std::find_if(known.begin(), known.end(), [&](auto candidate) { return starts(candidate, word); });
  return longer == known.end() ? std::string() : std::string(*longer);
}

}  // namespace motley
