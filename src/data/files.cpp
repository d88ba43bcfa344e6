#include "data/files.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "data/named.h"
#include "data/uri.h"

namespace motley::data {

bool is_address(const std::string& uri) {
  const std::size_t end = uri.find("://");
  if (end == std::string::npos || end == 0) return false;
  return std::ranges::all_of(std::string_view(uri).substr(0, end), [](unsigned char letter) {
    return std::isalnum(letter) != 0 || letter == '+' || letter == '-' || letter == '.';
  });
}

Result<std::string> without_addresses(const std::string& uri, const Bring& bring) {
  if (names_text(uri)) {
    if (!is_address(text_path(uri))) return uri;
    Result<std::string> text = bring(text_path(uri));
    return text ? Result<std::string>("text:" + *text) : text;
  }
  if (!is_address(uri)) return uri;
  for (std::size_t plus = uri.find('+'); plus != std::string::npos; plus = uri.find('+', plus + 1)) {
    if (!is_address(uri.substr(plus + 1))) continue;
    Result<std::string> images = bring(uri.substr(0, plus));
    if (!images) return images;
    Result<std::string> labels = bring(uri.substr(plus + 1));
    if (!labels) return labels;
    return *images + "+" + *labels;
  }
  return bring(uri);
}

Result<FilesOf> files_of(const std::string& uri, const std::string& part) {
  const std::vector<std::string> paths = paths_of(uri);
  if (paths.empty()) return FilesOf{};
  if (names_text(uri)) return FilesOf{.paths = paths};
  std::error_code ignored;
  if (std::filesystem::is_directory(uri, ignored)) {
    const Result<ImagesAndLabels> found = find_idx_pair(uri, part);
    if (!found) return found.error();
    return FilesOf{.paths = {found->images, found->labels}};
  }
  if (paths.size() == 1 || std::filesystem::exists(uri, ignored)) return FilesOf{.paths = {uri}};
  return FilesOf{.pair = true, .paths = {paths[1], paths[2]}};
}

}  // namespace motley::data
