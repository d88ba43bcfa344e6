#include "ps/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <string_view>

namespace motley::ps {
namespace {

Status require(bool holds, std::string_view what, double found, std::string_view expected) {
  if (holds) return {};
  return Error{ErrorCode::input,
               std::string(what) + " is " + std::to_string(found) + ", expected " + std::string(expected),
               "correct " + std::string(what)};
}

// Every comparison is written so that NaN fails it.
Status check_group(OptimizerKind kind, const GroupSpec& group) {
  const auto finite_from_zero = [](double value) { return value >= 0 && std::isfinite(value); };
  if (auto s = require(finite_from_zero(group.lr), "optimizer.lr", group.lr, "a number >= 0"); !s) return s;
  if (auto s =
          require(finite_from_zero(group.weight_decay), "optimizer.weight_decay", group.weight_decay, "a number >= 0");
      !s) {
    return s;
  }
  if (kind == OptimizerKind::outside) return {};  // its own numbers are its own affair
  if (kind == OptimizerKind::sgd) {
    if (auto s = require(finite_from_zero(group.momentum), "optimizer.momentum", group.momentum, "a number >= 0"); !s) {
      return s;
    }
    if (auto s = require(std::isfinite(group.dampening), "optimizer.dampening", group.dampening, "a finite number");
        !s) {
      return s;
    }
    if (group.nesterov && (group.momentum == 0 || group.dampening != 0)) {
      return Error{ErrorCode::input,
                   "optimizer.nesterov needs momentum > 0 and dampening 0, found momentum " +
                       std::to_string(group.momentum) + " and dampening " + std::to_string(group.dampening),
                   "set optimizer.momentum, for example to 0.9"};
    }
    return {};
  }
  const auto beta = [](double value) { return value >= 0 && value < 1; };
  if (auto s = require(beta(group.beta1), "optimizer.beta1", group.beta1, "0 <= beta1 < 1"); !s) return s;
  if (auto s = require(beta(group.beta2), "optimizer.beta2", group.beta2, "0 <= beta2 < 1"); !s) return s;
  return require(finite_from_zero(group.eps), "optimizer.eps", group.eps, "a number >= 0");
}

}  // namespace

double learning_rate_factor(const ScheduleSpec& schedule, std::uint64_t step) {
  if (step < schedule.warmup_steps) return static_cast<double>(step + 1) / static_cast<double>(schedule.warmup_steps);
  const std::uint64_t s = step - schedule.warmup_steps;
  switch (schedule.kind) {
    case ScheduleKind::constant:
      return 1;
    case ScheduleKind::step: {
      const std::uint64_t decays = s / schedule.step_size;
      return std::pow(schedule.gamma, static_cast<double>(decays));
    }
    case ScheduleKind::cosine: {
      if (s >= schedule.total_steps) return schedule.min_factor;
      const double turn = std::numbers::pi * static_cast<double>(s) / static_cast<double>(schedule.total_steps);
      return schedule.min_factor + (1 - schedule.min_factor) * (1 + std::cos(turn)) / 2;
    }
    case ScheduleKind::table:
      break;
  }
  return 1;
}

GroupSpec group_at(const ScheduleSpec& schedule, std::size_t index, GroupSpec group, std::uint64_t step) {
  if (schedule.kind != ScheduleKind::table) {
    group.lr *= learning_rate_factor(schedule, step);
    return group;
  }
  const ScheduleTable& table = *schedule.table;
  const std::uint64_t rows = table.rates.size() / table.groups;
  const std::uint64_t row = std::min(step / table.steps_per_row, rows - 1);
  const ScheduleTable::Rates& rates = table.rates[row * table.groups + index];
  group.lr = rates.lr;
  group.momentum = rates.momentum;
  group.beta1 = rates.beta1;
  group.beta2 = rates.beta2;
  return group;
}

void Rates::follow(FollowedRates rates, std::uint64_t now) {
  std::erase_if(followed_, [&](const FollowedRates& each) { return each.first_step >= rates.first_step; });
  followed_.push_back(std::move(rates));
  const auto later = std::ranges::find_if(followed_, [&](const FollowedRates& each) { return each.first_step > now; });
  if (later - followed_.begin() > 1) followed_.erase(followed_.begin(), later - 1);
}

GroupSpec Rates::at(std::uint64_t step, std::size_t index, const GroupSpec& group) const {
  GroupSpec found = group_at(schedule_, index, group, step);
  for (const FollowedRates& rates : followed_)
    if (rates.first_step <= step) found.lr = rates.lr[index];
  return found;
}

Status check(const OptimizerSpec& optimizer) {
  if (optimizer.groups.empty()) {
    return Error{ErrorCode::input, "the optimizer has no parameter group, expected at least one", "add a group"};
  }
  for (const GroupSpec& group : optimizer.groups) {
    if (auto status = check_group(optimizer.kind, group); !status) return status;
  }
  return {};
}

Status check(const ScheduleSpec& schedule) {
  if (schedule.kind == ScheduleKind::step) {
    if (auto s = require(schedule.step_size > 0, "schedule.step_size", 0, "at least 1"); !s) return s;
    return require(schedule.gamma >= 0 && std::isfinite(schedule.gamma), "schedule.gamma", schedule.gamma,
                   "a number >= 0");
  }
  if (schedule.kind == ScheduleKind::cosine) {
    if (auto s = require(schedule.total_steps > 0, "schedule.total_steps", 0, "at least 1"); !s) return s;
    return require(schedule.min_factor >= 0 && schedule.min_factor <= 1, "schedule.min_factor", schedule.min_factor,
                   "a number from 0 to 1");
  }
  if (schedule.kind == ScheduleKind::table) {
    const ScheduleTable* table = schedule.table.get();
    const bool whole = table != nullptr && table->steps_per_row > 0 && table->groups > 0 && !table->rates.empty() &&
                       table->rates.size() % table->groups == 0;
    if (!whole) return Error{ErrorCode::input, "the schedule's table has no rows, or incomplete ones", ""};
  }
  return {};
}

Status check_groups(const Layout& layout, const OptimizerSpec& optimizer, const ScheduleSpec& schedule) {
  if (schedule.kind == ScheduleKind::table && schedule.table->groups != optimizer.groups.size()) {
    return Error{ErrorCode::input,
                 "the schedule is of " + std::to_string(schedule.table->groups) + " parameter groups, expected " +
                     std::to_string(optimizer.groups.size()),
                 ""};
  }
  for (const LayoutEntry& entry : layout.entries()) {
    if (entry.kind == TensorKind::trained && entry.group >= optimizer.groups.size()) {
      return Error{ErrorCode::input,
                   "tensor '" + entry.name + "' is in parameter group " + std::to_string(entry.group) +
                       ", expected a number below " + std::to_string(optimizer.groups.size()),
                   "add the group to the optimizer"};
    }
  }
  return {};
}

}  // namespace motley::ps
