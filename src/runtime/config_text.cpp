// The canonical text of a configuration, and what the rest of the program takes from it.

#include <charconv>

#include "runtime/config.h"
#include "runtime/config_fields.h"
#include "runtime/config_recipes.h"

namespace motley::runtime {
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
std::string literal(std::int64_t value) { return number(value); }
std::string literal(double value) { return number(value); }
std::string literal(const GlobalBatch& value) {
  return value.automatic ? "\"auto:" + number(value.samples) + "\"" : number(value.samples);
}
template <class T>
std::string literal(const std::vector<T>& values) {
  std::string out = "[";
  for (const T& value : values) out += (out.size() > 1 ? ", " : "") + literal(value);
  return out + "]";
}

// '*' any run of characters, '?' one; linear in the product of the lengths.
bool glob(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace

bool RunConfig::operator==(const RunConfig& other) const { return to_toml(*this) == to_toml(other); }

std::string to_toml(const RunConfig& config) {
  std::string out;
  std::string section;
  RunConfig recipe;
  apply_recipe(config.model_kind, recipe);
  visit_fields(config, [&](const std::string& key, const auto& member, const char*) {
    const std::size_t dot = key.find('.');
    if (key.substr(0, dot) != section) {
      section = key.substr(0, dot);
      out += (out.empty() ? "[" : "\n[") + section + "]\n";
      // Otherwise the recipe's groups would come back.
      if (section == "optimizer" && config.groups.empty() && !recipe.groups.empty()) out += "groups = []\n";
    }
    out += key.substr(dot + 1) + " = " + literal(member) + "\n";
  });
  for (const GroupConfig& group : config.groups) {
    out += "\n[[optimizer.groups]]\nmatch = " + quoted(group.match) + "\n";
    if (group.lr) out += "lr = " + literal(*group.lr) + "\n";
    if (group.weight_decay) out += "weight_decay = " + literal(*group.weight_decay) + "\n";
    if (group.momentum) out += "momentum = " + literal(*group.momentum) + "\n";
  }
  return out;
}

ps::OptimizerSpec optimizer_spec(const RunConfig& config) {
  ps::OptimizerSpec spec;
  spec.kind = config.optimizer_kind == "adamw"  ? ps::OptimizerKind::adamw
              : config.optimizer_kind == "adam" ? ps::OptimizerKind::adam
                                                : ps::OptimizerKind::sgd;
  spec.groups.push_back(config.optimizer);
  for (const GroupConfig& group : config.groups) {
    ps::GroupSpec own = config.optimizer;
    own.lr = group.lr.value_or(own.lr);
    own.weight_decay = group.weight_decay.value_or(own.weight_decay);
    own.momentum = group.momentum.value_or(own.momentum);
    spec.groups.push_back(own);
  }
  return spec;
}

ps::ScheduleSpec schedule_spec(const RunConfig& config, std::uint64_t total_steps) {
  ps::ScheduleSpec spec;
  spec.kind = config.schedule_kind == "cosine" ? ps::ScheduleKind::cosine
              : config.schedule_kind == "step" ? ps::ScheduleKind::step
                                               : ps::ScheduleKind::constant;
  spec.warmup_steps = config.warmup_steps;
  spec.step_size = config.step_size;
  spec.gamma = config.gamma;
  spec.min_factor = config.min_factor;
  const std::uint64_t rest = total_steps > config.warmup_steps ? total_steps - config.warmup_steps : 1;
  spec.total_steps = config.cosine_steps > 0 ? config.cosine_steps : rest;
  return spec;
}

std::uint32_t group_of(const RunConfig& config, const std::string& tensor) {
  for (std::size_t i = config.groups.size(); i > 0; --i) {
    if (glob(config.groups[i - 1].match, tensor)) return static_cast<std::uint32_t>(i);
  }
  return 0;
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

}  // namespace motley::runtime
