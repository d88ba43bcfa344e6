#pragma once
// The checkpoint that a command works on. Functions without state.

#include <filesystem>

#include "report/sink.h"
#include "store/checkpoint.h"

namespace motley::cli {

/// `source` is a checkpoint's directory, and not a run's, which stands for its newest checkpoint.
bool is_checkpoint(const std::filesystem::path& source);

/// Reads the checkpoint that `source` names.
Result<store::CheckpointContent> read_source(const std::filesystem::path& source, report::Sink& sink);

}  // namespace motley::cli
