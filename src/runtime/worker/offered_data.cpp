#include "runtime/worker/offered_data.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "data/uri.h"

namespace motley::runtime {
namespace {

namespace fs = std::filesystem;

// Without links and dots, whether it exists or not; empty where the system does not say, which lies nowhere.
fs::path resolved(const fs::path& path) {
  std::error_code failed;
  const fs::path absolute = fs::absolute(path, failed);
  if (failed) return {};
  fs::path found = fs::weakly_canonical(absolute, failed);
  return failed ? fs::path() : found;
}

bool lies_under(const fs::path& file, const fs::path& directory) {
  const fs::path inside = resolved(file), base = resolved(directory);
  if (inside.empty() || base.empty()) return false;
  // "/data/" has an empty last part.
  auto end = base.end();
  if (!base.has_filename()) --end;
  return std::mismatch(base.begin(), end, inside.begin(), inside.end()).first == end;
}

bool overrides(const OfferedData& offered, const std::string& key) {
  const std::string mine = key + "=";
  return std::ranges::any_of(offered.overrides, [&](const std::string& text) { return text.starts_with(mine); });
}

bool offers(const OfferedData& offered, const std::string& path) {
  return std::ranges::any_of(offered.directories,
                             [&](const std::string& directory) { return lies_under(path, directory); });
}

Status check_uri(const std::string& key, const std::string& uri, const OfferedData& offered) {
  if (overrides(offered, key)) return {};
  for (const std::string& path : data::paths_of(uri)) {
    if (offers(offered, path)) continue;
    std::string message = "the head's ";
    message.append(key).append(
        " is a file of this machine, which no --data-dir offers: expected fashion-mnist, mnist or synthetic data, ");
    message.append("found ").append(uri);
    std::string hint = "--data-dir DIR, where the file lies below DIR; or --set ";
    hint.append(key).append("=… with a path of your own");
    return Error{ErrorCode::input, std::move(message), std::move(hint)};
  }
  return {};
}

}  // namespace

bool is_own(const std::string& key, const std::string& uri, const OfferedData& offered) {
  const std::vector<std::string> paths = data::paths_of(uri);
  if (paths.empty() || overrides(offered, key)) return true;
  if (!std::ranges::all_of(paths, [&](const std::string& path) { return offers(offered, path); })) return false;
  std::error_code ignored;
  return fs::exists(paths.front(), ignored) ||
         (paths.size() > 1 && fs::exists(paths[1], ignored) && fs::exists(paths[2], ignored));
}

Status check_offered(const config::RunConfig& config, const OfferedData& offered) {
  // The script's own data sets, which no path leads to.
  if (config.model_kind == config::kScriptKind && config.data_uri == config::kScriptKind &&
      (config.data_test_uri.empty() || config.data_test_uri == config::kScriptKind))
    return {};
  if (Status train = check_uri("data.uri", config.data_uri, offered); !train) return train;
  return check_uri("data.test_uri", config.data_test_uri, offered);
}

}  // namespace motley::runtime
