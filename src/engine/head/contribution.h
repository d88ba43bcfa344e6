#pragma once
// What the header of a chunk of a contribution must be, whoever sends it. Pure.

#include <cstddef>
#include <optional>
#include <string>

#include "motley/layout.h"
#include "wire/frame.h"

namespace motley::engine {

struct Expectation {  // what a frame should have been
  std::string expected, found;
};

/// What is wrong with it; empty: nothing. `large_codec`: of chunks of large tensors, which may come in bf16 or exactly
/// as well; empty: any. `body`: bytes.
std::optional<Expectation> contribution_fault(const wire::FrameHeader& header, std::size_t body, const Layout& layout,
                                              std::optional<wire::CodecId> large_codec);

}  // namespace motley::engine
