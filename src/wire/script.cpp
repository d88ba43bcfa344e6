#include "wire/script.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace motley::wire {
namespace {

constexpr std::size_t kToldMax = 3;         // differences that are told by name
constexpr std::size_t kValueBytesMax = 60;  // of a value that is told
constexpr const char* kTakeTheHeads =
    "motley join TOKEN --fetch takes the head's script; or copy it, and the modules that it imports, to this machine";

std::pair<std::string_view, std::string_view> part_at(std::string_view text, char mark) {
  const std::size_t at = text.find(mark);
  if (at == std::string_view::npos) return {text, {}};
  return {text.substr(0, at), text.substr(at + 1)};
}

bool is_value(std::string_view word) { return word.starts_with('='); }
bool is_code(std::string_view word) { return !is_value(word) && word.find(':') == std::string_view::npos; }
bool same_word(std::string_view a, std::string_view b) { return a == b || (!is_value(a) && same_item(a, b)); }

/// As a terminal may show it: it comes from another machine.
std::string shown(std::string_view value) {
  std::string text(value.substr(0, kValueBytesMax));
  std::ranges::replace_if(text, [](char each) { return each < ' ' || each > '~'; }, '?');
  return value.size() > kValueBytesMax ? text + "…" : text;
}

struct Item {
  std::string_view name, here, there;
};

/// A value that differs may follow from code that does.
std::vector<Item> code_first(const std::vector<Item>& items) {
  std::vector<Item> sorted;
  std::ranges::copy_if(items, std::back_inserter(sorted), [](const Item& item) { return is_code(item.here); });
  std::ranges::copy_if(items, std::back_inserter(sorted), [](const Item& item) { return !is_code(item.here); });
  return sorted;
}

/// A comma-separated list of what differs.
std::string told(const std::vector<Item>& items) {
  std::string text;
  const std::size_t count = std::min(items.size(), kToldMax);
  for (std::size_t i = 0; i < count; ++i) {
    const Item& item = items[i];
    text.append(i == 0 ? "" : ", ").append(item.name);
    if (is_value(item.here) && is_value(item.there))
      text += " (" + shown(item.there.substr(1)) + " instead of " + shown(item.here.substr(1)) + ")";
  }
  if (items.size() > count) text += " and " + std::to_string(items.size() - count) + " more";
  return text;
}

}  // namespace

std::optional<FingerprintDifference> script_difference(std::string_view here, std::string_view there) {
  std::unordered_map<std::string_view, std::string_view> theirs;
  while (!there.empty()) {
    const auto [line, more] = part_at(there, '\n');
    theirs.insert(part_at(line, '\t'));
    there = more;
  }
  std::vector<Item> differ;
  while (!here.empty()) {
    const auto [line, more] = part_at(here, '\n');
    here = more;
    const auto [name, word] = part_at(line, '\t');
    const auto found = theirs.find(name);
    if (found != theirs.end() && !same_word(word, found->second)) differ.push_back({name, word, found->second});
  }
  if (differ.empty()) return std::nullopt;
  return FingerprintDifference{"the script of the run", "another script: not the same in " + told(code_first(differ)),
                               kTakeTheHeads};
}

}  // namespace motley::wire
