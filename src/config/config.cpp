#include "config/config.h"

#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <type_traits>

#include "base/nearest.h"
#include "config/check.h"
#include "config/fields.h"
#include "config/recipes.h"

namespace motley::config {
namespace {

constexpr std::size_t kListMax = 1024;

constexpr std::uint64_t kCountMax = std::uint64_t{1} << 40;
constexpr std::size_t kGroupsMax = 64;

std::string found(const toml::node& node) {
  std::ostringstream out;
  out << node.type();
  return out.str();
}

bool assign(const toml::node& node, bool& out) {
  const auto value = node.value_exact<bool>();
  if (value) out = *value;
  return value.has_value();
}
bool assign(const toml::node& node, std::string& out) {
  const auto value = node.value_exact<std::string>();
  if (value) out = *value;
  return value.has_value();
}
bool assign(const toml::node& node, std::int64_t& out) {
  const auto value = node.value_exact<std::int64_t>();
  if (value) out = *value;
  return value.has_value();
}
bool assign(const toml::node& node, std::uint64_t& out) {
  const auto value = node.value_exact<std::int64_t>();
  if (!value || *value < 0 || static_cast<std::uint64_t>(*value) > kCountMax) return false;
  out = static_cast<std::uint64_t>(*value);
  return true;
}
bool assign(const toml::node& node, double& out) {
  if (const auto whole = node.value_exact<std::int64_t>()) {
    out = static_cast<double>(*whole);
    return true;
  }
  const auto value = node.value_exact<double>();
  if (!value || !std::isfinite(*value)) return false;
  out = *value;
  return true;
}
template <class T>
bool assign(const toml::node& node, std::vector<T>& out) {
  const toml::array* list = node.as_array();
  if (list == nullptr || list->size() > kListMax) return false;
  std::vector<T> values(list->size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!assign(*list->get(i), values[i])) return false;
  }
  out = std::move(values);
  return true;
}
bool assign(const toml::node& node, std::optional<double>& out) {
  double value = 0;
  if (!assign(node, value)) return false;
  out = value;
  return true;
}

std::string where(const toml::node& node, const std::string& origin) {
  return node.source().begin.line == 0 ? origin : origin + ":" + std::to_string(node.source().begin.line);
}

std::vector<std::string> known_keys() {
  std::vector<std::string> keys{"optimizer.groups"};
  RunConfig config;
  visit_fields(config, [&](const char* key, auto&, const char*) { keys.emplace_back(key); });
  return keys;
}

Error unknown_key(const std::string& key, const std::string& place) {
  const std::vector<std::string> keys = known_keys();
  const std::vector<std::string_view> views(keys.begin(), keys.end());
  const std::string close = nearest(key, views);
  return bad(place + ": there is no key '" + key + "'",
             close.empty() ? "`motley train --keys` lists them" : "did you mean '" + close + "'?");
}

// Of earlier versions: a value that is refused; or a key that is gone, but may say what is done `now`.
struct Removed {
  std::string_view key, value, now, instead;
};
constexpr Removed kRemoved[]{
    {"train.mode", "helper", "", "train.mode=auto"},
    {"train.global_batch", "auto", "", "train.global_batch=256"},
    {"wire.gradients", "top64", "", "wire.gradients=int4"},
    {"wire.chain", "", "none", "wire.gradients=auto"},
};

const Removed* removed_key(const std::string& key) {
  const auto found = std::ranges::find(kRemoved, key, &Removed::key);
  return found == std::end(kRemoved) ? nullptr : found;
}

Status refuse_removed(const Removed& removed, const toml::node& node, const std::string& origin) {
  const auto value = node.value_exact<std::string>();
  const bool gone = removed.value.empty();
  if (gone ? value == removed.now : !value || value->substr(0, value->find(':')) != removed.value) return {};
  const std::string what = std::string(removed.key) + (value ? " = \"" + *value + "\"" : "");
  return bad(where(node, origin) + ": " + what + " is not in this version of motley",
             "--set " + std::string(removed.instead) + ", in a new run");
}

Status apply_groups(const toml::node& node, RunConfig& config, const std::string& origin) {
  const toml::array* list = node.as_array();
  if (list == nullptr || list->size() > kGroupsMax) {
    return bad(where(node, origin) + ": optimizer.groups: expected at most 64 tables ([[optimizer.groups]])");
  }
  config.groups.clear();
  for (const toml::node& item : *list) {
    const toml::table* table = item.as_table();
    if (table == nullptr) return bad(where(item, origin) + ": optimizer.groups: expected tables, found " + found(item));
    GroupConfig group;
    for (const auto& [name, value] : *table) {
      bool good = false;
      if (name == "match")
        good = assign(value, group.match);
      else if (name == "lr")
        good = assign(value, group.lr);
      else if (name == "weight_decay")
        good = assign(value, group.weight_decay);
      else if (name == "momentum")
        good = assign(value, group.momentum);
      if (!good) {
        return bad(where(value, origin) + ": optimizer.groups." + std::string(name.str()) + " cannot be used",
                   "a group has match = \"pattern\" and any of lr, weight_decay, momentum (numbers)");
      }
    }
    if (group.match.empty())
      return bad(where(item, origin) + ": optimizer.groups: match is missing", "match = \"*.bias\"");
    config.groups.push_back(std::move(group));
  }
  return {};
}

Status apply_key(const std::string& key, const toml::node& node, RunConfig& config, const std::string& origin) {
  if (key == "optimizer.groups") return apply_groups(node, config, origin);
  if (const Removed* was = removed_key(key)) {
    if (Status stays = refuse_removed(*was, node, origin); !stays || was->value.empty()) return stays;
  }
  bool known = false;
  Status status;
  visit_fields(config, [&](const char* name, auto& member, const char* help) {
    if (key != name) return;
    known = true;
    if (!assign(node, member)) {
      status = bad(where(node, origin) + ": " + key + ": expected " + type_name<std::decay_t<decltype(member)>>() +
                       ", found " + found(node),
                   help);
    }
  });
  if (!known) return unknown_key(key, where(node, origin));
  return status;
}

bool has_keys(const std::string& section) {
  const std::vector<std::string> keys = known_keys();
  return section.find('.') == std::string::npos ||
         std::ranges::any_of(keys, [&](const std::string& key) { return key.starts_with(section + "."); });
}

Status apply_table(const toml::table& table, const std::string& prefix, RunConfig& config, const std::string& origin) {
  for (const auto& [name, node] : table) {
    const std::string key = prefix + std::string(name.str());
    const toml::table* inner = node.as_table();
    const Status status = inner != nullptr && has_keys(key) ? apply_table(*inner, key + ".", config, origin)
                                                            : apply_key(key, node, config, origin);
    if (!status) return status;
  }
  return {};
}

Result<toml::table> parse_toml(std::string_view text, const std::string& origin) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    return bad(origin + ":" + std::to_string(error.source().begin.line) +
                   ": this is not TOML: " + std::string(error.description()),
               "a run file looks like: model.kind = \"fashion-cnn\"");
  }
}

// "key=value": the value as TOML, or as a bare string when it is no TOML value ("--set model.kind=mlp").
Status apply_override(const std::string& text, RunConfig& config) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return Error{ErrorCode::usage, "--set " + text + ": expected key=value", "--set train.epochs=5"};
  }
  const std::string key = text.substr(0, equals);
  const std::string value = text.substr(equals + 1);
  const Result<toml::table> typed = parse_toml("value = " + value, text);
  const std::string origin = "--set " + text;
  const toml::table fallback{{"value", value}};
  const toml::table& table = typed ? *typed : fallback;
  const toml::node* node = table.get("value");
  if (table.size() != 1 || node == nullptr) return bad(origin + ": the value cannot be read");
  Status status = apply_key(key, *node, config, origin);
  if (!status && !node->is_boolean() && !node->is_string()) {
    // A string key given a bare number ("--set data.uri=7") is still a string.
    const toml::table bare{{"value", value}};
    if (apply_key(key, *bare.get("value"), config, origin)) return {};
  }
  return status;
}

// torch.optim.AdamW is the one optimizer whose default decay is not zero.
constexpr double kAdamwDecay = 0.01;

// Keys whose defaults follow from what the user gave.
void complete(RunConfig& config, const RunConfig& recipe, const toml::table& table,
              const std::vector<std::string>& overrides) {
  const auto given = [&](const std::string& key) {
    for (const std::string& text : overrides) {
      if (text.starts_with(key + "=")) return true;
    }
    return table.at_path(key).node() != nullptr;
  };
  if (config.optimizer_kind == "adamw" && recipe.optimizer_kind != "adamw" && !given("optimizer.weight_decay")) {
    config.optimizer.weight_decay = kAdamwDecay;
  }
  if (given("train.epochs") && !given("train.steps")) config.steps = 0;
  if (config.model_kind == "gpt-mini" && !given("data.test_uri")) config.data_test_uri = config.data_uri;
}

Result<RunConfig> build(const toml::table& table, const std::string& origin,
                        const std::vector<std::string>& overrides) {
  RunConfig config;
  const auto kind_in_file = table["model"]["kind"].value<std::string>();
  std::string kind = kind_in_file.value_or("");
  for (const std::string& text : overrides) {
    if (text.rfind("model.kind=", 0) == 0) kind = text.substr(11);
  }
  if (kind.empty()) return bad(origin + ": model.kind is missing", "model.kind = \"fashion-cnn\"");
  if (!apply_recipe(kind, config)) {
    std::vector<std::string> kinds = recipe_names();
    kinds.emplace_back("torchscript");
    return one_of("model.kind", kind, kinds).error();
  }
  const RunConfig recipe = config;
  if (Status status = apply_table(table, "", config, origin); !status) return status.error();
  for (const std::string& text : overrides) {
    if (Status status = apply_override(text, config); !status) return status.error();
  }
  complete(config, recipe, table, overrides);
  if (Status status = check(config); !status) return status.error();
  return config;
}

}  // namespace

Result<RunConfig> parse(std::string_view toml, const std::string& origin, const std::vector<std::string>& overrides) {
  if (toml.size() > (1U << 20))
    return bad(origin + ": expected at most 1 MiB of TOML, found " + std::to_string(toml.size()));
  Result<toml::table> table = parse_toml(toml, origin);
  if (!table) return table.error();
  return build(*table, origin, overrides);
}

Result<RunConfig> load(const std::string& target, const std::vector<std::string>& overrides) {
  const std::vector<std::string> recipes = recipe_names();
  if (std::find(recipes.begin(), recipes.end(), target) != recipes.end()) {
    return build(toml::table{{"model", toml::table{{"kind", target}}}}, target, overrides);
  }
  std::error_code code;
  if (!std::filesystem::is_regular_file(target, code)) {
    std::string list;
    for (const std::string& name : recipes) list += (list.empty() ? "" : ", ") + name;
    const std::vector<std::string_view> views(recipes.begin(), recipes.end());
    const std::string close = nearest(target, views);
    return bad("'" + target + "' is neither a recipe (" + list + ") nor a file",
               close.empty() ? "motley train fashion-cnn" : "did you mean '" + close + "'?");
  }
  std::ifstream file(target, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return Error{ErrorCode::io, target + ": cannot be read", "check its permissions"};
  return parse(text.str(), target, overrides);
}

}  // namespace motley::config
