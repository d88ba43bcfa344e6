#include "wire/fingerprint.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace motley::wire {
namespace {

constexpr std::string_view kContents = "; contents: ", kWhole = "; whole: ", kHash = "; hash: ";
constexpr const char* kHint =
    "use the same files in the same order on all machines; what is split or drawn at random needs a seed: "
    "random_split(dataset, lengths, generator=torch.Generator().manual_seed(0))";

std::pair<std::string_view, std::string_view> cut(std::string_view text, std::string_view mark) {
  const std::size_t at = text.find(mark);
  if (at == std::string_view::npos) return {text, {}};
  return {text.substr(0, at), text.substr(at + mark.size())};
}

bool same_figure(std::string_view a, std::string_view b, std::int64_t tolerance = kFigureTolerance) {
  std::int64_t here = 0, there = 0;
  const auto end_a = std::from_chars(a.data(), a.data() + a.size(), here);
  const auto end_b = std::from_chars(b.data(), b.data() + b.size(), there);
  const bool numbers = end_a.ec == std::errc{} && end_b.ec == std::errc{} && end_a.ptr == a.data() + a.size() &&
                       end_b.ptr == b.data() + b.size();
  if (!numbers) return a == b;
  // The difference of two numbers of 64 bits, without overflow.
  const std::uint64_t apart = here > there ? static_cast<std::uint64_t>(here) - static_cast<std::uint64_t>(there)
                                           : static_cast<std::uint64_t>(there) - static_cast<std::uint64_t>(here);
  return apart <= static_cast<std::uint64_t>(tolerance);
}

// --- arrays ---

struct Array {
  std::string_view name, kind;  // with ROWS and STEP
  std::uint64_t size = 0, rows = 0, step = 0, sum = 0, numbered = 0;
  std::string_view projections;
};

std::optional<std::uint64_t> number(std::string_view text, int base) {
  std::uint64_t value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (end.ec != std::errc{} || end.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<Array> array(std::string_view text) {
  Array found;
  const auto [name, rest] = cut(text, "=");
  const auto [kind, sums] = cut(rest, ":");
  const auto [sum, more] = cut(sums, ":");
  const auto [numbered, projections] = cut(more, ":");
  const auto [type, blocks] = cut(kind, ",");
  const auto [rows, step] = cut(blocks, ",");
  const std::string_view shape = cut(type, "[").second, size = shape.substr(0, shape.find_first_of("x]"));
  const std::array parsed{number(size, 10), number(rows, 10), number(step, 10), number(sum, 16), number(numbered, 16)};
  if (!std::ranges::all_of(parsed, [](const auto& each) { return each.has_value(); })) return std::nullopt;
  found = {name, kind, *parsed[0], *parsed[1], *parsed[2], *parsed[3], *parsed[4], projections};
  const bool sound =
      found.rows > 0 && found.step >= found.rows && found.sum < kHashPrime && found.numbered < kHashPrime;
  if (!sound) return std::nullopt;
  return found;
}

std::uint64_t inverse(std::uint64_t value) {
  std::uint64_t result = 1;
  for (std::uint64_t exponent = kHashPrime - 2; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result = result * value % kHashPrime;
    value = value * value % kHashPrime;
  }
  return result;
}

/// The number of the one block that differs; empty where several do.
std::optional<std::uint64_t> one_block(const Array& a, const Array& b, std::uint64_t blocks) {
  const std::uint64_t sum = (a.sum + kHashPrime - b.sum) % kHashPrime;
  const std::uint64_t numbered = (a.numbered + kHashPrime - b.numbered) % kHashPrime;
  if (sum == 0) return std::nullopt;
  const std::uint64_t place = numbered * inverse(sum) % kHashPrime;
  if (place == 0 || place > blocks) return std::nullopt;
  return place - 1;
}

bool same_projections(std::string_view a, std::string_view b, std::int64_t tolerance) {
  if (a.empty() || b.empty()) return false;
  for (int left = 5; left > 0; --left) {
    const auto [first_a, more_a] = cut(a, ",");
    const auto [first_b, more_b] = cut(b, ",");
    if (!same_figure(first_a, first_b, left > 1 ? tolerance : kFigureTolerance)) return false;
    a = more_a;
    b = more_b;
  }
  return a.empty() && b.empty();
}

std::int64_t root(std::uint64_t value) {
  std::uint64_t low = 0, high = std::uint64_t{1} << 20;
  while (low < high) {
    const std::uint64_t middle = (low + high + 1) / 2;
    (middle * middle <= value ? low : high) = middle * middle <= value ? middle : middle - 1;
  }
  return static_cast<std::int64_t>(low + 1);
}

/// What differs, in words; empty where it may be rounding.
std::string array_difference(const Array& a, const Array& b) {
  if (a.kind != b.kind) {
    return std::string(a.name) + " is " + std::string(cut(b.kind, ",").first) + " instead of " +
           std::string(cut(a.kind, ",").first);
  }
  if (a.sum == b.sum && a.numbered == b.numbered) return {};
  const std::uint64_t blocks = a.size / a.step + (a.size % a.step != 0 ? 1 : 0);
  const auto block = one_block(a, b, blocks);
  const std::int64_t tolerance = block ? 10 + kOneTolerance * root(blocks) : kManyTolerance * root(blocks);
  if (same_projections(a.projections, b.projections, tolerance)) return {};
  if (!block) return "several samples differ in the values of " + std::string(a.name);
  const std::uint64_t first = *block * a.step;
  return (a.rows == 1 ? "sample " + std::to_string(first)
                      : "one of the samples " + std::to_string(first) + " to " + std::to_string(first + a.rows - 1)) +
         " alone differs, in the values of " + std::string(a.name);
}

/// Between the arrays that both have.
std::string whole_difference(std::string_view here, std::string_view there) {
  while (!here.empty()) {
    const auto [word, more] = cut(here, " ");
    here = more;
    const auto ours = array(word);
    std::string_view others = there;
    while (ours && !others.empty()) {
      const auto [other, rest] = cut(others, " ");
      others = rest;
      const auto theirs = array(other);
      if (!theirs) return "what is compared cannot be read";
      if (theirs->name != ours->name) continue;
      if (std::string differs = array_difference(*ours, *theirs); !differs.empty()) return differs;
    }
  }
  return {};
}

}  // namespace

bool same_item(std::string_view a, std::string_view b) {
  auto [number_a, rest_a] = cut(a, ":");
  auto [number_b, rest_b] = cut(b, ":");
  auto [hash_a, figures_a] = cut(rest_a, ":");
  auto [hash_b, figures_b] = cut(rest_b, ":");
  if (number_a != number_b || hash_a != hash_b) return false;
  while (!figures_a.empty() && !figures_b.empty()) {
    const auto [first_a, more_a] = cut(figures_a, ",");
    const auto [first_b, more_b] = cut(figures_b, ",");
    if (!same_figure(first_a, first_b)) return false;
    figures_a = more_a;
    figures_b = more_b;
  }
  return figures_a.empty() && figures_b.empty();
}

std::optional<FingerprintDifference> fingerprint_difference(std::string_view here, std::string_view there) {
  const auto [head, contents] = cut(here, kContents);
  const auto [their_head, their_contents] = cut(there, kContents);
  const auto [items, whole] = cut(contents, kWhole);
  const auto [their_items, their_whole] = cut(their_contents, kWhole);
  const auto [words, hash] = cut(head, kHash);
  const auto [their_words, their_hash] = cut(their_head, kHash);
  const bool other_hash = !hash.empty() && !their_hash.empty() && hash != their_hash;
  if (words != their_words || other_hash) {
    return FingerprintDifference{std::string(words) + (other_hash ? " with the same contents" : ""),
                                 std::string(their_words) + (other_hash ? " with other contents" : ""),
                                 "copy the data set of the coordinator to this machine"};
  }
  if (items.empty() || their_items.empty()) return std::nullopt;
  std::string_view ours = items, theirs = their_items, first;
  std::size_t compared = 0, others = 0;
  while (!ours.empty() || !theirs.empty()) {
    const auto [item, more] = cut(ours, " ");
    const auto [their_item, their_more] = cut(theirs, " ");
    ++compared;
    if (!same_item(item, their_item) && ++others == 1) first = cut(item.empty() ? their_item : item, ":").first;
    ours = more;
    theirs = their_more;
  }
  const std::string expected = std::string(words) + " with the same contents";
  if (others > 0) {
    return FingerprintDifference{expected,
                                 "as many, but other samples: " + std::to_string(others) + " of " +
                                     std::to_string(compared) +
                                     " that were compared differ, the first of them sample " + std::string(first),
                                 kHint};
  }
  std::string differs = whole_difference(whole, their_whole);
  if (differs.empty()) return std::nullopt;
  return FingerprintDifference{expected, "as many, but " + std::move(differs), kHint};
}

}  // namespace motley::wire
