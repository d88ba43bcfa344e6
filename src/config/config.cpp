#include "config/config.h"

#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>
#include <type_traits>

#include "base/nearest.h"
#include "config/check.h"
#include "config/fields.h"

namespace motley::config {
namespace {

constexpr std::size_t kListMax = 1024;
constexpr std::size_t kTextBytesMax = 1U << 20;
constexpr std::uint64_t kCountMax = std::uint64_t{1} << 40;

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
/// Where keys come from.
struct Origin {
  std::string name;
  bool kept = false;  // in a run's directory
};

std::string where(const toml::node& node, const Origin& origin) {
  return node.source().begin.line == 0 ? origin.name : origin.name + ":" + std::to_string(node.source().begin.line);
}

std::vector<std::string> known_keys() {
  std::vector<std::string> keys;
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

Status refuse_removed(const Removed& removed, const toml::node& node, const Origin& origin) {
  const auto value = node.value_exact<std::string>();
  const bool gone = removed.value.empty();
  if (gone ? value == removed.now : !value || value->substr(0, value->find(':')) != removed.value) return {};
  const std::string what = std::string(removed.key) + (value ? " = \"" + *value + "\"" : "");
  return bad(where(node, origin) + ": " + what + " is not in this version of motley",
             "--set " + std::string(removed.instead) + ", in a new run");
}

// What earlier versions took here, and what is now the target's own.
constexpr std::string_view kSectionsOfTargets[]{"data.", "optimizer.", "schedule."};
constexpr std::string_view kKeysOfTargets[]{"model.file",   "model.loss",  "model.hidden", "model.block",
                                            "model.layers", "model.heads", "model.width"};
constexpr std::string_view kFormerKinds[]{"fashion-cnn", "mnist-cnn", "mlp", "gpt-mini", "torchscript"};

Status refuse_targets_own(const std::string& key, const toml::node& node, const Origin& origin) {
  const auto value = node.value_exact<std::string>();
  const bool kind = key == "model.kind" && value && std::ranges::find(kFormerKinds, *value) != std::end(kFormerKinds);
  const auto begins = [&](std::string_view section) { return key.starts_with(section); };
  if (!kind && std::ranges::none_of(kSectionsOfTargets, begins) &&
      std::ranges::find(kKeysOfTargets, key) == std::end(kKeysOfTargets))
    return {};
  const std::string what = where(node, origin) + ": " + key + (kind ? " = \"" + *value + "\"" : "");
  if (origin.kept)
    return bad(what + ": this run was made by an earlier motley", "go on with that version of it, or begin a new run");
  return bad(what + " is not in this version of motley: keys of data, model and optimizer are the script's own",
             "give them to the script as its arguments: motley train SCRIPT.py --lr 0.1");
}

Status apply_key(const std::string& key, const toml::node& node, RunConfig& config, const Origin& origin) {
  if (Status ours = refuse_targets_own(key, node, origin); !ours) return ours;
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

Status apply_table(const toml::table& table, const std::string& prefix, RunConfig& config, const Origin& origin) {
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
               "such a file looks like: train.global_batch = 256");
  }
}

// "key=value": the value as TOML, or as a bare string where it is no TOML value ("--set train.mode=rounds").
Status apply_override(const std::string& text, RunConfig& config) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return Error{ErrorCode::usage, "--set " + text + ": expected key=value", "--set train.epochs=5"};
  }
  const std::string key = text.substr(0, equals);
  const std::string value = text.substr(equals + 1);
  const Result<toml::table> typed = parse_toml("value = " + value, text);
  const Origin origin{.name = "--set " + text};
  const toml::table fallback{{"value", value}};
  const toml::table& table = typed ? *typed : fallback;
  const toml::node* node = table.get("value");
  if (table.size() != 1 || node == nullptr) return bad(origin.name + ": the value cannot be read");
  return apply_key(key, *node, config, origin);
}

bool gives(const std::vector<std::string>& overrides, const std::string& key) {
  return std::ranges::any_of(overrides, [&](const std::string& text) { return text.starts_with(key + "="); });
}

// Who asks for epochs alone wants no number of steps that somebody gave before.
Status apply_text(std::string_view toml, RunConfig& config, const Origin& origin) {
  if (toml.size() > kTextBytesMax)
    return bad(origin.name + ": expected at most 1 MiB of TOML, found " + std::to_string(toml.size()));
  const Result<toml::table> table = parse_toml(toml, origin.name);
  if (!table) return table.error();
  const auto given = [&](const char* key) { return table->at_path(key).node() != nullptr; };
  if (given("train.epochs") && !given("train.steps")) config.steps = 0;
  return apply_table(*table, "", config, origin);
}

// What the user gave, over what the target or the run's directory says.
Result<RunConfig> with_own(RunConfig config, const std::string& origin, const std::vector<std::string>& overrides) {
  for (const std::string& text : overrides) {
    if (Status status = apply_override(text, config); !status) return status.error();
  }
  if (gives(overrides, "train.epochs") && !gives(overrides, "train.steps")) config.steps = 0;
  if (config.model_kind.empty()) return bad(origin + ": model.kind is missing", "model.kind = \"script\"");
  if (Status status = check(config); !status) return status.error();
  return config;
}

}  // namespace

Result<RunConfig> parse(std::string_view toml, const std::string& origin, const std::vector<std::string>& overrides) {
  RunConfig config;
  if (Status status = apply_text(toml, config, {.name = origin}); !status) return status.error();
  return with_own(std::move(config), origin, overrides);
}

Result<RunConfig> parse_kept(std::string_view toml, const std::string& origin,
                             const std::vector<std::string>& overrides) {
  RunConfig config;
  if (Status status = apply_text(toml, config, {.name = origin, .kept = true}); !status) return status.error();
  return with_own(std::move(config), origin, overrides);
}

Result<RunConfig> load(const Asked& asked) {
  RunConfig config;
  if (!asked.text.empty()) {
    if (Status status = apply_text(asked.text, config, {.name = asked.target}); !status) return status.error();
  } else if (asked.target == kSoftmaxKind) {
    config.model_kind = kSoftmaxKind;
  } else {
    return bad("'" + asked.target + "' is neither softmax nor a script",
               "motley train softmax, or motley train SCRIPT.py");
  }
  return with_own(std::move(config), asked.target, asked.overrides);
}

}  // namespace motley::config
