#include "data/uri.h"

#include <filesystem>
#include <string_view>
#include <system_error>

namespace motley::data {
namespace {

constexpr std::string_view kTextPrefix = "text:";

}  // namespace

bool names_text(const std::string& uri) { return uri.starts_with(kTextPrefix) || uri.ends_with(".txt"); }

std::string text_path(const std::string& uri) {
  return uri.starts_with(kTextPrefix) ? uri.substr(kTextPrefix.size()) : uri;
}

bool same_text(const std::string& a, const std::string& b) {
  if (!names_text(a) || !names_text(b)) return false;
  std::error_code missing;
  return text_path(a) == text_path(b) || std::filesystem::equivalent(text_path(a), text_path(b), missing);
}

}  // namespace motley::data
