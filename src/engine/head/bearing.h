#pragma once
// Which way a gradient points, of a part of its elements: those of one chunk, at places that are the same for every
// contribution. Pure.

#include "codec/codec.h"
#include "modes/work/bearing.h"
#include "motley/layout.h"

namespace motley::engine {

/// The chunk by which contributions are compared: of those that are large enough the last, which a backward pass is
/// through with first, so that others are not summed before it tells.
[[nodiscard]] ChunkId pointing_chunk(const Layout& layout) noexcept;
/// Of 4,096 elements at the most, so that it costs nothing beside a step.
[[nodiscard]] modes::Bearing bearing_of(std::uint64_t secret, ChunkId chunk, const codec::Encoded& values) noexcept;

}  // namespace motley::engine
