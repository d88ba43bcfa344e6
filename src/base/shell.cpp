#include "base/shell.h"

#include <algorithm>
#include <cctype>
#include <cstring>

namespace motley {
namespace {

bool is_plain(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || std::strchr("_./=:,@%+-", c); }

}  // namespace

std::string in_shell(std::string_view word) {
  if (!word.empty() && std::ranges::all_of(word, is_plain)) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string in_shell(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : " ") + in_shell(word);
  return all;
}

}  // namespace motley
