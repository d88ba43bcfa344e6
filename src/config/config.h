#pragma once
// The configuration of a run: what RUN.toml, a recipe's name and --set key=value describe. One table (config_fields.h)
// gives keys, help and defaults to the parser, the canonical text and the documentation.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "motley/result.h"
#include "ps/spec.h"

namespace motley::config {

/// Overrides for the tensors whose names match a glob pattern: one optimizer parameter group.
struct GroupConfig {
  std::string match;
  std::optional<double> lr, weight_decay, momentum;
  bool operator==(const GroupConfig&) const = default;
};

/// The model.kind of runs whose model and data are those of a user's own program.
inline constexpr const char* kScriptKind = "script";

struct RunConfig {
  // model
  std::string model_kind;  // "fashion-cnn", "mnist-cnn", "mlp", "softmax", "gpt-mini", "torchscript"
  std::string model_file;  // torchscript: path on the head
  std::string model_loss = "cross_entropy";
  std::vector<std::string> model_arguments;                            // script
  std::uint64_t model_run = 1;                                         // script
  std::vector<std::int64_t> model_hidden = {256, 128};                 // mlp
  bool model_text = false;                                             // script
  std::uint64_t model_block = 256;                                     // samples of text
  std::uint64_t model_layers = 6, model_heads = 6, model_width = 384;  // gpt-mini
  // data
  std::string data_uri, data_test_uri;
  double data_mean = 0, data_std = 1;
  // train
  std::uint64_t steps = 0;  // 0: from epochs
  std::uint64_t epochs = 1;
  std::uint64_t global_batch = 256;
  std::uint64_t seed = 1;
  std::string mode = "exact";
  std::uint64_t rounds_steps = 30;               // of a round
  double rounds_rate = 0, rounds_momentum = -1;  // -1: until it is known what is published of such a run
  std::string rounds_overlap = "none";           // none, next
  bool drop_last = false, shuffle = true;
  double clip_norm = 0;
  std::string clip_norm_of = "own";
  std::uint64_t micro_batch = 0;  // 0: the device's default
  std::uint64_t grain = 0;        // 0: 32 where layers act on groups of samples, else 1
  std::uint64_t evaluate_every = 0;
  std::uint64_t min_workers = 1;
  std::vector<double> shares;  // empty: by speed
  double verify = 0.005;
  double checkpoint_seconds = 0;  // 0: as often as they take a hundredth of the time
  // optimizer, schedule
  std::string optimizer_kind = "sgd";
  ps::GroupSpec optimizer;
  std::vector<GroupConfig> groups;
  std::string schedule_kind = "constant";
  std::uint64_t warmup_steps = 0, step_size = 1000, cosine_steps = 0;  // cosine_steps 0: to the end of the run
  double gamma = 0.1, min_factor = 0;
  // wire
  std::string wire_gradients = "fp32", wire_weights = "fp32";

  bool operator==(const RunConfig& other) const;
};

/// `target`: a recipe's name or the path of a TOML file; `overrides`: "key=value". Later overrides win. Errors (all of
/// class input or usage): unknown recipe, key or value with the nearest right word; wrong types with the one expected;
/// line numbers.
Result<RunConfig> load(const std::string& target, const std::vector<std::string>& overrides);
/// The text of a TOML document, as sent to workers or kept in the run directory.
Result<RunConfig> parse(std::string_view toml, const std::string& origin,
                        const std::vector<std::string>& overrides = {});
/// Every key with its value: parse(to_toml(c)) == c.
std::string to_toml(const RunConfig& config);

/// The sizes of a run in what its server counts: steps, or rounds of them.
struct Sizes {
  std::uint64_t batch = 0;           // samples of one
  std::uint64_t steps = 0;           // of the run; 0: from its epochs
  std::uint64_t evaluate_every = 0;  // 0: at the end of each epoch
};
/// `samples` of the training set. Rounds are whole: what ends or falls inside of one counts with it.
Sizes sizes(const RunConfig& config, std::uint64_t samples);
/// Errors: the run would end, or be evaluated, inside of a round.
Status check_whole_rounds(const RunConfig& config, std::uint64_t samples);
bool in_rounds(const RunConfig& config);
/// Nobody said by what rate the weights follow what a round comes to.
bool rate_by_workers(const RunConfig& config);
/// In how many bits gradients or weights travel is decided while it runs.
bool leaves_codec_open(const RunConfig& config);
/// What the server does with what rounds come to.
ps::OptimizerSpec outer_spec(const RunConfig& config, std::size_t groups);

ps::OptimizerSpec optimizer_spec(const RunConfig& config);  // one group a GroupConfig, after group 0
ps::ScheduleSpec schedule_spec(const RunConfig& config, std::uint64_t total_steps);
/// The parameter group of a tensor: the last group whose pattern matches, else 0.
std::uint32_t group_of(const RunConfig& config, const std::string& tensor);

std::vector<std::string> recipe_names();
/// "key (type, default): help", for `--help` and the guide.
std::vector<std::string> describe_keys();

}  // namespace motley::config
