// What the parameter server takes from a configuration.

#include <string_view>

#include "config/config.h"

namespace motley::config {
namespace {

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

bool in_rounds(const RunConfig& config) { return config.mode == "rounds"; }

Sizes sizes(const RunConfig& config, std::uint64_t samples) {
  const std::uint64_t batch = config.global_batch.samples;
  if (!in_rounds(config)) return {batch, config.steps, config.evaluate_every};
  const auto up = [](std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; };
  const std::uint64_t steps = config.rounds_steps;
  const std::uint64_t per_epoch = up(samples, batch);
  // The last round of an epoch may have fewer steps.
  const std::uint64_t rounds = config.steps / per_epoch * up(per_epoch, steps) + up(config.steps % per_epoch, steps);
  return {batch * steps, rounds, up(config.evaluate_every, steps)};
}

ps::OptimizerSpec outer_spec(const RunConfig& config, std::size_t groups) {
  ps::GroupSpec group;
  group.lr = config.rounds_rate;
  group.momentum = config.rounds_momentum;
  group.nesterov = group.momentum > 0;
  ps::OptimizerSpec spec;
  spec.groups.assign(groups, group);
  return spec;
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

}  // namespace motley::config
