#pragma once
// What the properties of codecs and of deltas know of blocks.

#include <cstddef>

#include "codec/codec.h"

namespace motley::codec {

/// Values that share a scale.
inline std::size_t block_of(CodecId codec) { return codec == CodecId::int8 ? 256 : codec == CodecId::int4 ? 64 : 1; }

}  // namespace motley::codec
