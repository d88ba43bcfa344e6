#pragma once
// The loops of the codecs, compiled once for each instruction set from kernels_loops.h. All sets give the same bits.
// Private to codec; tests and benchmarks look at every set.

#include <cstddef>
#include <cstdint>
#include <span>

#include "codec/codec.h"

namespace motley::codec {

/// Elements that share a scale of one byte, and the bytes of their codes.
struct BlockShape {
  std::size_t elements = 0, bytes = 0;
};
inline constexpr BlockShape kInt8Block{256, 256};
inline constexpr BlockShape kInt4Block{64, 32};

/// `elements`: of the whole body, since scales lie before codes.
struct Body {
  CodecId codec = CodecId::fp32;
  const std::byte* bytes = nullptr;
  std::size_t elements = 0;
};

struct Kernels {
  const char* name = nullptr;
  /// As codec::encode; null where a span may be empty.
  void (*encode)(CodecId codec, const float* values, const float* residual, std::size_t count, std::byte* body,
                 float* left) noexcept = nullptr;
  void (*decode)(const Body& body, std::size_t first, std::size_t count, float* out) noexcept = nullptr;
  void (*add)(const Body& body, std::size_t first, std::size_t count, float* sum) noexcept = nullptr;
  float (*largest)(const Body& body) noexcept = nullptr;
  /// As codec::encode_delta and codec::add_delta.
  bool (*encode_delta)(CodecId codec, const float* target, const float* base, std::size_t count, std::byte* body,
                       float* moved) noexcept = nullptr;
  bool (*add_delta)(const Body& body, const float* base, float* moved) noexcept = nullptr;
};

extern const Kernels kPortable;  // on arm64 that is NEON, which every such processor has
#if defined(__x86_64__)
extern const Kernels kAvx2;
extern const Kernels kAvx512;
#endif

/// Those that this processor runs, the fastest last.
std::span<const Kernels* const> kernels() noexcept;

}  // namespace motley::codec
