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
  else
    return "a list of numbers";
}

template <class Config, class F>
void visit_model_and_data(Config& c, F& f) {
  f("model.kind", c.model_kind, "fashion-cnn, mnist-cnn, mlp, softmax, gpt-mini or torchscript");
  f("model.file", c.model_file, "the TorchScript file of a torchscript model");
  f("model.loss", c.model_loss, "cross_entropy, nll or mse");
  f("model.arguments", c.model_arguments, "of a Python script, which every machine starts with the same ones");
  f("model.run", c.model_run, "which of the runs that a Python script makes, from 1 on");
  f("model.hidden", c.model_hidden, "sizes of the hidden layers of an mlp");
  f("model.text", c.model_text, "of a script: it predicts text, which is what prices of rounds are published for");
  f("model.block", c.model_block, "text: bytes of a sample, the context of a gpt-mini");
  f("model.layers", c.model_layers, "gpt-mini: transformer blocks");
  f("model.heads", c.model_heads, "gpt-mini: attention heads, a divisor of model.width");
  f("model.width", c.model_width, "gpt-mini: size of the embeddings");
  f("data.uri", c.data_uri,
    "training set: fashion-mnist, mnist, text:FILE, a directory, images+labels, x.npy+y.npy or a packed file; or "
    "http(s) addresses of such files");
  f("data.test_uri", c.data_test_uri, "test set, likewise; the text of data.uri: its last tenth; empty: no evaluation");
  f("data.mean", c.data_mean, "pixels become (v / 255 - mean) / std");
  f("data.std", c.data_std, "see data.mean");
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
void visit_optimizer_and_wire(Config& c, F& f) {
  f("optimizer.kind", c.optimizer_kind, "sgd, adam or adamw; script: one that a Python script brings");
  f("optimizer.lr", c.optimizer.lr, "learning rate");
  f("optimizer.momentum", c.optimizer.momentum, "sgd");
  f("optimizer.dampening", c.optimizer.dampening, "sgd");
  f("optimizer.nesterov", c.optimizer.nesterov, "sgd");
  f("optimizer.weight_decay", c.optimizer.weight_decay, "L2 for sgd and adam, decoupled for adamw");
  f("optimizer.beta1", c.optimizer.beta1, "adam, adamw");
  f("optimizer.beta2", c.optimizer.beta2, "adam, adamw");
  f("optimizer.eps", c.optimizer.eps, "adam, adamw");
  f("schedule.kind", c.schedule_kind, "constant, step or cosine");
  f("schedule.warmup_steps", c.warmup_steps, "linear warm-up before the schedule");
  f("schedule.step_size", c.step_size, "step: steps between decays");
  f("schedule.gamma", c.gamma, "step: factor of a decay");
  f("schedule.steps", c.cosine_steps, "cosine: steps until the minimum; 0: the end of the run");
  f("schedule.min_factor", c.min_factor, "cosine: smallest rate as a share of the first");
  f("wire.gradients", c.wire_gradients, "of workers on other machines, on the wire: fp32, bf16, int8, int4 or auto");
  f("wire.weights", c.wire_weights,
    "to workers on other machines, what a step changes: fp32, bf16, int8, int4 or auto");
}

template <class Config, class F>
void visit_fields(Config& c, F&& f) {
  visit_model_and_data(c, f);
  visit_training(c, f);
  visit_optimizer_and_wire(c, f);
}

}  // namespace motley::config
