#include "config/settings_file.h"

#include <toml++/toml.h>

#include <fstream>
#include <sstream>

#include "config/config.h"

namespace motley::config {
namespace {

constexpr std::size_t kBytesMax = std::size_t{1} << 20;
constexpr std::size_t kSettingsMax = 256;

std::string at_line(const std::string& path, const toml::source_region& source) {
  return path + ":" + std::to_string(source.begin.line);
}

// Errors: a run has no such key, or takes no such value. What keys ask of each other shows when all are there.
Status check_setting(const std::string& setting, const std::string& place) {
  const Result<RunConfig> tried = parse("model.kind = \"script\"", place, {setting});
  const std::string prefix = "--set " + setting;
  if (tried || !tried.error().message.starts_with(prefix)) return {};
  return Error{tried.error().code,
               place + tried.error().message.substr(tried.error().message.find(": ", prefix.size())),
               tried.error().hint};
}

Status flatten(const toml::table& table, const std::string& prefix, const std::string& path,
               std::vector<std::string>& settings) {
  for (const auto& [name, node] : table) {
    const std::string key = prefix + std::string(name.str());
    const std::string place = at_line(path, node.source());
    if (const toml::table* inner = node.as_table()) {
      if (Status status = flatten(*inner, key + ".", path, settings); !status) return status;
      continue;
    }
    if (settings.size() == kSettingsMax) return Error{ErrorCode::input, path + ": too many keys", ""};
    std::ostringstream text;
    text << key << '=' << toml::toml_formatter{node};
    settings.push_back(text.str());
    if (Status status = check_setting(settings.back(), place); !status) return status;
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> read_settings(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kBytesMax + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file && !file.eof()) return Error{ErrorCode::io, path + ": cannot be read", "--config FILE names a TOML file"};
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kBytesMax) return Error{ErrorCode::input, path + ": expected at most 1 MiB of TOML", ""};
  std::vector<std::string> settings;
  try {
    if (Status status = flatten(toml::parse(text), "", path, settings); !status) return status.error();
  } catch (const toml::parse_error& error) {
    return Error{ErrorCode::input,
                 at_line(path, error.source()) + ": this is not TOML: " + std::string(error.description()),
                 "a file for --config looks like: train.epochs = 5"};
  }
  return settings;
}

}  // namespace motley::config
