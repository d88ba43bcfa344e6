#pragma once
// Checkpoints: directories DIR/checkpoints/step-NNNNNNNNN with model.safetensors, optimizer.safetensors and run.json;
// written beside, synced, then renamed; DIR/checkpoints/latest (a text file) names the newest.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "motley/bytes.h"
#include "motley/layout.h"
#include "motley/result.h"

namespace motley::store {

struct CheckpointContent {
  Layout layout;
  std::uint64_t step = 0;  // = version of the weights
  std::uint64_t epoch = 0;
  std::uint64_t position = 0;  // in the epoch's sample order
  std::uint64_t run = 0;
  std::uint64_t incarnation = 0;
  std::uint64_t updates_before = 0;  // that the optimizer's state had seen at step 0
  std::string config;                // canonical TOML
  std::string model_kind;
  std::vector<SharedBytes> weights;                           // by chunk
  std::map<std::string, std::vector<SharedBytes>> optimizer;  // state name -> by chunk
  std::map<std::string, SharedBytes> frozen;  // frozen tensors' bytes, by entry name (dtype and shape from layout)
};

/// Writes one; returns its directory. Errors: disk_full, io. Nothing half-written stays behind under its final name.
/// Keeps the newest `keep` checkpoints (and step 0), deletes older ones after success.
Result<std::filesystem::path> write_checkpoint(const std::filesystem::path& run_dir, const CheckpointContent& content,
                                               std::size_t keep = 3);

/// The newest checkpoint that passes its hashes (falls back to the one before, and says so in `warnings`).
Result<CheckpointContent> read_latest_checkpoint(const std::filesystem::path& run_dir,
                                                 std::vector<std::string>& warnings);
Result<CheckpointContent> read_checkpoint(const std::filesystem::path& checkpoint_dir);

}  // namespace motley::store
