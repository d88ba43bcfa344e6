#pragma once
// What the built-in models are, whoever computes them: libtorch (adapters/torch) or the torch of a Python. Torch-free.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "motley/bytes.h"
#include "motley/result.h"

namespace motley::builtin {

/// Puts the entries whose name matches `pattern` ('*' any run of characters, '?' one) into optimizer group `group`. The
/// first rule that matches wins; without one an entry is in group 0.
struct GroupRule {
  std::string pattern;
  std::uint32_t group = 0;
};

/// A decoder-only transformer over bytes.
struct GptShape {
  std::int64_t block = 256;  // bytes it sees at once
  std::int64_t layers = 6;
  std::int64_t heads = 6;
  std::int64_t width = 384;  // a multiple of heads
};

struct ModelSpec {
  std::string kind;                               // "fashion-cnn" | "mnist-cnn" | "mlp" | "gpt-mini" | "torchscript"
  SharedBytes file;                               // torchscript: the file's bytes
  std::string loss = "cross_entropy";             // "cross_entropy" | "nll" | "mse"
  std::vector<std::int64_t> sample_shape;         // of the data set
  std::uint64_t outputs = 0;                      // classes; for mse the elements of a target
  std::uint64_t seed = 0;                         // of the initial weights
  std::uint64_t targets = 1;                      // class numbers of a sample; above 1 an output is [N, targets, C]
  std::vector<std::int64_t> hidden = {256, 128};  // mlp
  GptShape gpt;                                   // gpt-mini
  std::vector<GroupRule> groups;
  std::uint32_t group_samples = 32;  // BatchNorm and dropout act on groups of so many positions
};

enum class Loss : std::uint8_t { cross_entropy, nll, mse };
/// Errors: usage (no such loss).
Result<Loss> find_loss(const std::string& name);

/// Whether the built-in model of that kind can be made for these samples. Errors: usage (no such kind), input (sizes
/// that no model has), mismatch (made for other data).
Status check_sizes(const ModelSpec& spec);

/// Errors: mismatch (`dataset` is not what the model takes). `part`: "training" or "test".
Status check_data(const ModelSpec& spec, const data::Dataset& dataset, const std::string& part);

std::uint32_t group_of(const ModelSpec& spec, const std::string& name);

/// Of the bytes of a frozen tensor (FNV-1a, 64 bits), by which machines see that they have the same.
std::uint64_t content_hash(std::span<const std::byte> bytes);

/// Samples that a device takes at once unless it is told otherwise.
std::uint32_t micro_batch(const ModelSpec& spec, bool accelerator);

}  // namespace motley::builtin
