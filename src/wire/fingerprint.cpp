#include "wire/fingerprint.h"

#include <charconv>
#include <utility>

namespace motley::wire {
namespace {

constexpr std::string_view kContents = "; contents: ";

std::pair<std::string_view, std::string_view> cut(std::string_view text, std::string_view mark) {
  const std::size_t at = text.find(mark);
  if (at == std::string_view::npos) return {text, {}};
  return {text.substr(0, at), text.substr(at + mark.size())};
}

bool same_figure(std::string_view a, std::string_view b) {
  std::int64_t here = 0, there = 0;
  const auto end_a = std::from_chars(a.data(), a.data() + a.size(), here);
  const auto end_b = std::from_chars(b.data(), b.data() + b.size(), there);
  const bool numbers = end_a.ec == std::errc{} && end_b.ec == std::errc{} && end_a.ptr == a.data() + a.size() &&
                       end_b.ptr == b.data() + b.size();
  if (!numbers) return a == b;
  // The difference of two numbers of 64 bits, without overflow.
  const std::uint64_t apart = here > there ? static_cast<std::uint64_t>(here) - static_cast<std::uint64_t>(there)
                                           : static_cast<std::uint64_t>(there) - static_cast<std::uint64_t>(here);
  return apart <= static_cast<std::uint64_t>(kFigureTolerance);
}

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

}  // namespace

std::optional<FingerprintDifference> fingerprint_difference(std::string_view here, std::string_view there) {
  const auto [head, items] = cut(here, kContents);
  const auto [their_head, their_items] = cut(there, kContents);
  if (head != their_head) {
    return FingerprintDifference{std::string(head), std::string(their_head),
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
  if (others == 0) return std::nullopt;
  return FingerprintDifference{
      std::string(head) + " with the same contents",
      "as many, but other samples: " + std::to_string(others) + " of " + std::to_string(compared) +
          " that were compared differ, the first of them sample " + std::string(first),
      "use the same files in the same order on all machines; what is split or drawn at random needs a seed: "
      "random_split(dataset, lengths, generator=torch.Generator().manual_seed(0))"};
}

}  // namespace motley::wire
