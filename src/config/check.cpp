#include "config/check.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/nearest.h"

namespace motley::config {

Error bad(std::string message, std::string hint) { return {ErrorCode::input, std::move(message), std::move(hint)}; }

Status one_of(const std::string& key, const std::string& value, const std::vector<std::string>& allowed) {
  if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return {};
  std::string list;
  for (const std::string& word : allowed) list += (list.empty() ? "" : ", ") + word;
  const std::vector<std::string_view> views(allowed.begin(), allowed.end());
  const std::string close = nearest(value, views);
  return bad(key + ": expected one of " + list + "; found '" + value + "'",
             close.empty() ? "" : "did you mean '" + close + "'?");
}

namespace {

Status in_range(const std::string& key, double value, double low, double high) {
  if (value >= low && value <= high) return {};
  std::ostringstream text;
  text << key << ": expected " << low << " to " << high << ", found " << value;
  return bad(text.str());
}

// What rounds are not made for yet would be another training without a word.
Status check_rounds(const RunConfig& c) {
  if (c.mode != "rounds") return {};
  const auto not_yet = [](const std::string& setting, const std::string& hint) {
    return bad(setting + " is not supported with train.mode = \"rounds\" yet", hint);
  };
  if (c.drop_last) return not_yet("train.drop_last = true", "--set train.drop_last=false");
  if (c.clip_norm > 0 && c.clip_norm_of != "own")
    return not_yet("train.clip_norm_of = \"previous\"", "--set train.clip_norm_of=own");
  return in_range("train.global_batch times train.rounds.steps",
                  static_cast<double>(c.global_batch) * static_cast<double>(c.rounds_steps), 1, 1e12);
}

}  // namespace

Status check(const RunConfig& c) {
  const std::vector<Status> all{
      one_of("model.kind", c.model_kind, {kScriptKind, kSoftmaxKind}),
      one_of("train.clip_norm_of", c.clip_norm_of, {"own", "previous"}),
      one_of("train.mode", c.mode, {"exact", "rounds", "auto"}),
      in_range("train.rounds.steps", static_cast<double>(c.rounds_steps), 1, 100'000),
      in_range("train.rounds.rate", c.rounds_rate, c.rounds_rate == 0 ? 0 : 1e-6, 10),
      in_range("train.rounds.momentum", c.rounds_momentum, c.rounds_momentum == -1 ? -1 : 0, 0.9999),
      one_of("train.rounds.overlap", c.rounds_overlap, {"none", "next"}),
      one_of("wire.gradients", c.wire_gradients, {"auto", "fp32", "bf16", "int8", "int4"}),
      one_of("wire.weights", c.wire_weights, {"auto", "fp32", "bf16", "int8", "int4"}),
      in_range("train.global_batch", static_cast<double>(c.global_batch), 1, 1 << 24),
      in_range("train.micro_batch", static_cast<double>(c.micro_batch), 0, 1 << 20),
      in_range("train.grain", static_cast<double>(c.grain), 0, 1 << 20),
      in_range("train.min_workers", static_cast<double>(c.min_workers), 1, 256),
      in_range("train.epochs", static_cast<double>(c.epochs), c.steps > 0 ? 0 : 1, 1e9),
      in_range("train.clip_norm", c.clip_norm, 0, 1e30),
      in_range("train.verify", c.verify, 0, 1),
      in_range("train.checkpoint_seconds", c.checkpoint_seconds, c.checkpoint_seconds == 0 ? 0 : 0.01, 86400),
  };
  for (const Status& status : all) {
    if (!status) return status;
  }
  if (const Status fits = check_rounds(c); !fits) return fits;
  for (const double share : c.shares) {
    if (!(share > 0) || !std::isfinite(share)) return bad("train.shares: expected numbers above 0");
  }
  return {};
}

}  // namespace motley::config
