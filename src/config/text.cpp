// The canonical text of a configuration.

#include <charconv>
#include <cmath>

#include "config/config.h"
#include "config/fields.h"

namespace motley::config {
namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      constexpr char kHex[] = "0123456789abcdef";
      out += "\\u00";
      out += kHex[(static_cast<unsigned char>(c) >> 4) & 15];
      out += kHex[static_cast<unsigned char>(c) & 15];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

template <class T>
std::string number(T value) {
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return {buffer, end};
}
std::string literal(bool value) { return value ? "true" : "false"; }
std::string literal(const std::string& value) { return quoted(value); }
std::string literal(std::uint64_t value) { return number(value); }
// Without a point a TOML number is an integer, which has neither a -0 nor 20 digits.
std::string literal(double value) {
  if (value == 0) return "0";
  if (std::abs(value) < 1e15) return number(value);
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  return {buffer, end};
}
template <class T>
std::string literal(const std::vector<T>& values) {
  std::string out = "[";
  for (const T& value : values) out += (out.size() > 1 ? ", " : "") + literal(value);
  return out + "]";
}

}  // namespace

bool RunConfig::operator==(const RunConfig& other) const { return to_toml(*this) == to_toml(other); }

std::string to_toml(const RunConfig& config) {
  std::string out;
  std::string section;
  visit_fields(config, [&](const std::string& key, const auto& member, const char*) {
    const std::size_t dot = key.find('.');
    if (key.substr(0, dot) != section) {
      section = key.substr(0, dot);
      out += (out.empty() ? "[" : "\n[") + section + "]\n";
    }
    out += key.substr(dot + 1) + " = " + literal(member) + "\n";
  });
  return out;
}

std::vector<std::string> describe_keys() {
  std::vector<std::string> lines;
  RunConfig config;
  visit_fields(config, [&](const std::string& key, const auto& member, const char* help) {
    lines.push_back(key + " (" + type_name<std::decay_t<decltype(member)>>() + ", default " + literal(member) +
                    "): " + help);
  });
  return lines;
}

}  // namespace motley::config
