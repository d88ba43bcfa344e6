#pragma once
// The parts of a checkpoint that writing and reading share: names, run.json, and where a tensor's bytes lie in the
// chunks. Internal to store/. Pure functions.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "motley/layout.h"
#include "motley/result.h"
#include "store/checkpoint.h"
#include "store/safetensors_file.h"

namespace motley::store {

inline constexpr const char* kModelFile = "model.safetensors";
inline constexpr const char* kOptimizerFile = "optimizer.safetensors";
inline constexpr const char* kRunFile = "run.json";
inline constexpr const char* kLatestFile = "latest";
inline constexpr std::uint64_t kRunJsonBytesMax = 64 << 20;

std::filesystem::path checkpoints_of(const std::filesystem::path& run_dir);
std::string checkpoint_name(std::uint64_t step);  // "step-000000123"
std::optional<std::uint64_t> checkpoint_step(std::string_view name);
/// Steps of all complete checkpoints, newest first.
std::vector<std::uint64_t> checkpoint_steps(const std::filesystem::path& checkpoints);
/// Finishes what a writer that crashed had begun: brings back a checkpoint that was moved aside, deletes the rest.
/// REQUIRES that nobody else writes: the run's lock is held.
void clean_checkpoints(const std::filesystem::path& checkpoints);

/// run.json: everything of a checkpoint that is no tensor.
struct RunJson {
  CheckpointContent content;  // without weights, optimizer and frozen
  std::vector<std::string> optimizer_states;
  FileHash model, optimizer;
};
/// Fails with ErrorCode::input for text that is not UTF-8.
Result<std::string> encode_run_json(const CheckpointContent& content, const FileHash& model, const FileHash& optimizer);
Result<RunJson> decode_run_json(std::string_view text, const std::string& name);

/// A piece of a tensor: `bytes` bytes of chunk `chunk` from `offset` on.
struct Piece {
  std::size_t chunk = 0;
  std::size_t offset = 0, bytes = 0;
};
/// Where the tensor of a placement lies, in its order.
std::vector<Piece> pieces_of(const Layout& layout, const Placement& placement);

/// The entry that an alias stands for, over any number of aliases; the entry itself when it is none.
std::optional<std::size_t> resolve_alias(const Layout& layout, std::size_t entry,
                                         const std::map<std::string, std::size_t, std::less<>>& by_name);
std::map<std::string, std::size_t, std::less<>> entries_by_name(const Layout& layout);

}  // namespace motley::store
