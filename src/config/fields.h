#pragma once
// The table of configuration keys: visit(config, f) calls f(key, member, help) for each. Private to this folder.

#include <string>
#include <type_traits>

#include "config/config.h"

namespace motley::config {

/// What a key takes, in words.
template <class T>
constexpr const char* type_name() {
  if constexpr (std::is_same_v<T, bool>)
    return "true or false";
  else if constexpr (std::is_same_v<T, std::string>)
    return "a string";
  else if constexpr (std::is_same_v<T, std::uint64_t>)
    return "a whole number that is not negative";
  else if constexpr (std::is_same_v<T, double>)
    return "a number";
  else if constexpr (std::is_same_v<T, std::vector<std::string>>)
    return "a list of strings";
  else
    return "a list of numbers";
}

template <class Config, class F>
void visit_model(Config& c, F& f) {
  f("model.kind", c.model_kind, "script or softmax: what the target is");
  f("model.arguments", c.model_arguments, "of the target, which every machine starts with the same ones");
  f("model.run", c.model_run, "which of the runs that a Python script makes, from 1 on");
  f("model.text", c.model_text, "of a script: it predicts text, which is what prices of rounds are published for");
  f("model.tested", c.model_tested, "false: it is not evaluated; true: it is, where it has a test set");
}

template <class Config, class F>
void visit_training(Config& c, F& f) {
  f("train.steps", c.steps, "optimizer updates; 0: as many as train.epochs asks for");
  f("train.epochs", c.epochs, "passes over the training set");
  f("train.global_batch", c.global_batch, "samples of one update, over all workers");
  f("train.seed", c.seed, "initial weights, sample order and dropout follow from it");
  f("train.mode", c.mode,
    "exact: each step as one machine would make it; rounds: of local steps, for slow links; auto: measures first, "
    "and takes exact or rounds, where the price is known");
  f("train.rounds.steps", c.rounds_steps, "rounds: steps that each worker makes by itself");
  f("train.rounds.rate", c.rounds_rate,
    "rounds: part of the workers' mean change that the weights follow at once; 0: without momentum all of it, else by "
    "the number of workers");
  f("train.rounds.overlap", c.rounds_overlap,
    "rounds: next: a worker begins the next one while its part of this one travels; none: it waits for the weights");
  f("train.rounds.momentum", c.rounds_momentum,
    "rounds: Nesterov momentum of these changes; 0: none; -1: 0.9 where that is published for such a run, else 0");
  f("train.drop_last", c.drop_last, "leave out the samples of an epoch that do not fill a batch");
  f("train.shuffle", c.shuffle, "false: each epoch has the samples in the order of the data set");
  f("train.clip_norm", c.clip_norm, "largest global gradient norm; 0: no clipping");
  f("train.clip_norm_of", c.clip_norm_of,
    "the norm that is compared with it: own, exact; or previous, the step before's: then weights leave sooner");
  f("train.micro_batch", c.micro_batch, "samples a device takes at once; 0: the device's default");
  f("train.grain", c.grain, "ranges are cut at multiples of it; 0: 32 where layers act on groups of samples, else 1");
  f("train.evaluate_every", c.evaluate_every, "steps between evaluations; 0: at the end of each epoch");
  f("train.min_workers", c.min_workers, "workers to wait for before the first step");
  f("train.shares", c.shares, "fixed shares of the workers in the order they joined; empty: by measured speed");
  f("train.verify", c.verify,
    "part of the time in which shares are computed twice, by two workers, and compared; where a model draws random "
    "numbers only while all devices draw the same, and not in rounds; 0: never, and devices are not compared when "
    "they join");
  f("train.checkpoint_seconds", c.checkpoint_seconds,
    "time between checkpoints; 0: as often as they take a hundredth of the time, and 5 s at the least");
}

template <class Config, class F>
void visit_wire(Config& c, F& f) {
  f("wire.gradients", c.wire_gradients, "of workers on other machines, on the wire: fp32, bf16, int8, int4 or auto");
  f("wire.weights", c.wire_weights,
    "to workers on other machines, what a step changes: fp32, bf16, int8, int4 or auto");
}

template <class Config, class F>
void visit_fields(Config& c, F&& f) {
  visit_model(c, f);
  visit_training(c, f);
  visit_wire(c, f);
}

}  // namespace motley::config
