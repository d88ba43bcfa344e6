#pragma once
// What a run directory keeps of pauses: the newest eval point that was resumed, and what the loss got from which
// version on. docs/formats/checkpoint.md is the specification. Nothing here is synced: what a power cut takes, a run
// that is resumed asks for again.

#include <cstdint>
#include <filesystem>
#include <optional>

#include "motley/result.h"
#include "motley/task.h"

namespace motley::store {

Status write_released(const std::filesystem::path& run_dir, std::uint64_t version);
/// 0: none.
std::uint64_t read_released(const std::filesystem::path& run_dir);

/// From `version` on. REQUIRES at most wire::kLossStateBytesMax.
Status write_state(const std::filesystem::path& run_dir, std::uint64_t version, const LossState& state);
/// The one that holds at `version`; number 0: none was written. Errors: input (damaged), io.
Result<LossState> read_state(const std::filesystem::path& run_dir, std::uint64_t version);
/// Of those that hold before `version` the newest stays.
void prune_states(const std::filesystem::path& run_dir, std::uint64_t version);
/// The run goes back to `version`: what was said later is gone.
void roll_back_releases(const std::filesystem::path& run_dir, std::uint64_t version);

}  // namespace motley::store
