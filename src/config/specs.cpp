// The sizes of a run, and what becomes of rounds.

#include <algorithm>
#include <string>

#include "base/assert.h"
#include "config/config.h"
#include "ps/outer_rate.h"

namespace motley::config {
namespace {

std::uint64_t quotient_up(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

}  // namespace

bool in_rounds(const RunConfig& config) { return config.mode == "rounds"; }

bool rate_by_workers(const RunConfig& config) {
  return in_rounds(config) && config.rounds_rate <= 0 && config.rounds_momentum > 0;
}

bool leaves_codec_open(const RunConfig& config) {
  return config.wire_gradients == "auto" || config.wire_weights == "auto";
}

Sizes sizes(const RunConfig& config, std::uint64_t samples) {
  const std::uint64_t batch = config.global_batch;
  if (!in_rounds(config)) return {batch, config.steps, config.evaluate_every};
  const std::uint64_t steps = config.rounds_steps, per_epoch = quotient_up(samples, batch);
  // The last round of an epoch may have fewer steps.
  const auto rounds = [&](std::uint64_t of) {
    return of / per_epoch * quotient_up(per_epoch, steps) + quotient_up(of % per_epoch, steps);
  };
  return {batch * steps, rounds(config.steps), rounds(config.evaluate_every)};
}

// More steps than were asked for would be another schedule, and other evaluation points those of another run.
Status check_whole_rounds(const RunConfig& config, std::uint64_t samples) {
  if (!in_rounds(config)) return {};
  const std::uint64_t of_round = config.rounds_steps, of_epoch = quotient_up(samples, config.global_batch);
  const auto refused = [&](const std::string& key, std::uint64_t asked, std::uint64_t fits, const std::string& other) {
    return Error{ErrorCode::input,
                 key + ": " + std::to_string(asked) + " steps end " + std::to_string(asked % of_epoch % of_round) +
                     " steps into a round; rounds are whole",
                 "--set " + key + "=" + std::to_string(fits) + ", or " + other};
  };
  const auto up_to = [](std::uint64_t steps, std::uint64_t multiple) {
    return quotient_up(steps, multiple) * multiple;
  };
  if (const std::uint64_t left = config.steps % of_epoch % of_round; left > 0) {
    return refused("train.steps", config.steps, std::min(config.steps - left + of_round, up_to(config.steps, of_epoch)),
                   "train.epochs, whose last round may be short");
  }
  const std::uint64_t every = config.evaluate_every;
  if (every % of_epoch == 0) return {};
  // A short round at the end of an epoch moves all that come after it.
  const std::uint64_t all = config.steps > 0 ? config.steps : config.epochs * of_epoch;
  const bool even = of_epoch % of_round == 0 || all <= of_epoch;
  if (even && every % of_round == 0) return {};
  const std::string after_epochs = "0: after each epoch";
  if (even) {
    return refused("train.evaluate_every", every, std::min(up_to(every, of_round), up_to(every, of_epoch)),
                   after_epochs);
  }
  return Error{ErrorCode::input,
               "train.evaluate_every: " + std::to_string(every) + " steps end inside of a round in some epochs, of " +
                   std::to_string(of_epoch) + " steps in rounds of " + std::to_string(of_round) + "; rounds are whole",
               "--set train.evaluate_every=" + std::to_string(up_to(every, of_epoch)) + ", or " + after_epochs};
}

ps::OptimizerSpec outer_spec(const RunConfig& config, std::size_t groups) {
  ps::GroupSpec group;
  MOTLEY_ASSERT(config.rounds_momentum >= 0);
  group.momentum = config.rounds_momentum;
  const double usual = group.momentum > 0 ? ps::outer_rate(1) : 1;
  group.lr = config.rounds_rate > 0 ? config.rounds_rate : usual;
  group.nesterov = group.momentum > 0;
  ps::OptimizerSpec spec;
  spec.groups.assign(groups, group);
  return spec;
}

}  // namespace motley::config
