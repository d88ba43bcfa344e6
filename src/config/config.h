#pragma once
// The configuration of a run: what a target, --config FILE and --set key=value describe. One table (fields.h) gives
// keys, help and defaults to the parser, the canonical text and the documentation. What is trained, on which data and
// by which optimizer, is the target's own.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "motley/result.h"
#include "ps/spec.h"

namespace motley::config {

/// The model.kind of runs whose model and data are those of a Python script.
inline constexpr const char* kScriptKind = "script";
/// And of softmax regression on made-up data.
inline constexpr const char* kSoftmaxKind = "softmax";

struct RunConfig {
  // model
  std::string model_kind;  // kScriptKind, kSoftmaxKind
  std::vector<std::string> model_arguments;
  std::uint64_t model_run = 1;  // script
  bool model_text = false;      // script
  bool model_tested = true;     // it is evaluated, where it has a test set
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
  // wire
  std::string wire_gradients = "fp32", wire_weights = "fp32";

  bool operator==(const RunConfig& other) const;
};

/// What a run is asked for by. Of what names a key, the last one wins.
struct Asked {
  std::string target;                    // "softmax", or what a script is called
  std::string text{};                    // of a script: the TOML document of its own keys
  std::vector<std::string> overrides{};  // "key=value"
};
/// Errors (all of class input, usage or io): a target, key or value that there is not, with the nearest right word;
/// wrong types with the one expected; line numbers.
Result<RunConfig> load(const Asked& asked);
/// The text of a TOML document, as it is sent to workers.
Result<RunConfig> parse(std::string_view toml, const std::string& origin,
                        const std::vector<std::string>& overrides = {});
/// That of a run's directory: one of an earlier version is refused as such.
Result<RunConfig> parse_kept(std::string_view toml, const std::string& origin,
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

/// "key (type, default): help", for `--help` and the guide.
std::vector<std::string> describe_keys();

}  // namespace motley::config
