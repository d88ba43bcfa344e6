#pragma once
// Orders that the sampler of a script gave, as the script's side leaves them in a run's directory: orders/EPOCH.txt,
// one sample number a line (docs/formats/order.md).

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "motley/result.h"

namespace motley::store {

/// Puts the sample in the place of each position, where the run has such orders. Errors: that of this epoch is not
/// there, is damaged or too short.
Status apply_listed_order(const std::filesystem::path& run_dir, std::uint64_t epoch,
                          std::span<std::uint64_t> positions);

}  // namespace motley::store
