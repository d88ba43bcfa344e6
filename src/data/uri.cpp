#include "data/uri.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "data/named.h"

namespace motley::data {
namespace {

constexpr std::string_view kTextPrefix = "text:";

}  // namespace

bool names_text(const std::string& uri) { return uri.starts_with(kTextPrefix) || uri.ends_with(".txt"); }

std::string text_path(const std::string& uri) {
  return uri.starts_with(kTextPrefix) ? uri.substr(kTextPrefix.size()) : uri;
}

std::vector<std::string> paths_of(const std::string& uri) {
  if (uri.empty()) return {};
  if (names_text(uri)) return {text_path(uri)};
  const std::vector<NamedDataset> named = named_datasets();
  const auto is_name = [&](const NamedDataset& dataset) { return dataset.name == uri; };
  if (uri.starts_with("synthetic:") || std::ranges::any_of(named, is_name)) return {};
  std::vector<std::string> paths{uri};
  if (const std::size_t plus = uri.find('+'); plus != std::string::npos) {
    paths.push_back(uri.substr(0, plus));
    paths.push_back(uri.substr(plus + 1));
  }
  return paths;
}

bool same_text(const std::string& a, const std::string& b) {
  if (!names_text(a) || !names_text(b)) return false;
  std::error_code missing;
  return text_path(a) == text_path(b) || std::filesystem::equivalent(text_path(a), text_path(b), missing);
}

}  // namespace motley::data
