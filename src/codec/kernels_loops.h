#pragma once
// Compiled once for each instruction set, so nothing here may be shared between them: no functions of the standard
// library, everything in an unnamed namespace. Plain loops that compilers turn into vector instructions.
//
// Each operation is a single IEEE 754 one, rounded to nearest even. Scales have two significant bits (deltas: one) and
// codes seven, so their product is exact, and adding it rounds once, with or without FMA.

#include "codec/kernels.h"
#include "codec/kernels_bits.h"

namespace motley::codec {
namespace {

// --- bf16 ---

inline Bits16 narrowed(Bits32 bits) noexcept {
  const Bits32 rounded = (bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16;
  return static_cast<Bits16>((bits & kNoSign) > kExponent ? bits >> 16 | 0x40U : rounded);
}

template <bool kResidual, bool kLeft>
void encode_bf16(const float* __restrict values, const float* __restrict residual, std::size_t count,
                 std::byte* __restrict body, float* __restrict left) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    const float value = kResidual ? values[i] + residual[i] : values[i];
    const Bits16 code = narrowed(bits_of(value));
    store16(body + 2 * i, code);
    if constexpr (kLeft) {
      const float rest = value - widened(code);
      left[i] = (bits_of(rest) & kExponent) == kExponent ? 0.0F : rest;
    }
  }
}

template <class Into>
void decode_bf16(const std::byte* __restrict codes, std::size_t count, float* __restrict out, Into into) noexcept {
  for (std::size_t i = 0; i < count; ++i) into(out[i], widened(load16(codes + 2 * i)));
}

// --- blocks with a scale ---

struct Int8 {
  static constexpr BlockShape kShape = kInt8Block;
  static constexpr float kLevels = 127;
  static constexpr std::uint8_t kZero = 0;
  static void pack(const std::int32_t* __restrict codes, std::byte* __restrict out) noexcept {
    for (std::size_t i = 0; i < kShape.elements; ++i) out[i] = static_cast<std::byte>(codes[i] & 0xFF);
  }
  template <class Into>
  static void unpack(const std::byte* __restrict in, float scale, float* __restrict out, Into into) noexcept {
    for (std::size_t i = 0; i < kShape.elements; ++i) {
      const auto code = static_cast<std::int8_t>(in[i]);
      into(out[i], static_cast<float>(code) * scale);
    }
  }
};

struct Int4 {  // byte i: element i in the lower half, element 32 + i in the upper; both plus 8
  static constexpr BlockShape kShape = kInt4Block;
  static constexpr float kLevels = 7;
  static constexpr std::uint8_t kZero = 0x88;
  static void pack(const std::int32_t* __restrict codes, std::byte* __restrict out) noexcept {
    for (std::size_t i = 0; i < kShape.bytes; ++i)
      out[i] = static_cast<std::byte>((codes[i] + 8) | (codes[kShape.bytes + i] + 8) << 4);
  }
  template <class Into>
  static void unpack(const std::byte* __restrict in, float scale, float* __restrict out, Into into) noexcept {
    for (std::size_t i = 0; i < kShape.bytes; ++i) {
      const auto pair = static_cast<std::int32_t>(in[i]);
      into(out[i], static_cast<float>((pair & 15) - 8) * scale);
      into(out[kShape.bytes + i], static_cast<float>((pair >> 4) - 8) * scale);
    }
  }
};

template <class Block, class Scale>
Bits16 scale_of(const float* values) noexcept {
  std::int32_t largest = 0;  // magnitudes order as their bits do, NaN above all
  for (std::size_t i = 0; i < Block::kShape.elements; ++i) {
    const auto bits = static_cast<std::int32_t>(bits_of(values[i]) & kNoSign);
    largest = bits > largest ? bits : largest;
  }
  return scale_for<Scale>(largest, Block::kLevels);
}

template <class Block, class Scale, bool kLeft>
Bits16 encode_block(const float* __restrict values, std::byte* __restrict codes, float* __restrict left) noexcept {
  const Bits16 scale_bits = scale_of<Block, Scale>(values);
  if (scale_bits == kNotFinite) {
    for (std::size_t i = 0; i < Block::kShape.bytes; ++i) codes[i] = std::byte{Block::kZero};
    if constexpr (kLeft)
      for (std::size_t i = 0; i < Block::kShape.elements; ++i) left[i] = 0;
    return kNotFinite;
  }
  const float scale = widened(scale_bits);
  const float inverse = scale_bits == 0 ? 0 : 1 / scale;
  std::int32_t rounded[Block::kShape.elements];
  for (std::size_t i = 0; i < Block::kShape.elements; ++i) {
    const float moved = values[i] * inverse + kRound;
    rounded[i] = static_cast<std::int32_t>(bits_of(moved) - kRoundBits);
    if constexpr (kLeft) left[i] = values[i] - (moved - kRound) * scale;
  }
  Block::pack(rounded, codes);
  return scale_bits;
}

template <class Block, bool kResidual, bool kLeft>
void encode_blocks(const float* __restrict values, const float* __restrict residual, std::size_t count,
                   std::byte* __restrict body, float* __restrict left) noexcept {
  constexpr std::size_t kElements = Block::kShape.elements;
  std::byte* codes = body + (count + kElements - 1) / kElements;
  float sums[kElements], rest[kElements];
  for (std::size_t first = 0; first < count; first += kElements) {
    const std::size_t width = count - first < kElements ? count - first : kElements;
    if (width == kElements) {
      const float* from = values + first;
      if constexpr (kResidual) {
        for (std::size_t i = 0; i < kElements; ++i) sums[i] = values[first + i] + residual[first + i];
        from = sums;
      }
      *body = HalfSteps::byte_of(encode_block<Block, HalfSteps, kLeft>(from, codes, kLeft ? left + first : nullptr));
    } else {
      for (std::size_t i = 0; i < kElements; ++i)
        sums[i] = i >= width ? 0 : (kResidual ? values[first + i] + residual[first + i] : values[first + i]);
      *body = HalfSteps::byte_of(encode_block<Block, HalfSteps, kLeft>(sums, codes, rest));
      if constexpr (kLeft)
        for (std::size_t i = 0; i < width; ++i) left[first + i] = rest[i];
    }
    ++body;
    codes += Block::kShape.bytes;
  }
}

template <class Block, class Scale, class Into>
void decode_blocks(const Body& body, std::size_t first, std::size_t count, float* __restrict out, Into into) noexcept {
  constexpr std::size_t kElements = Block::kShape.elements;
  const std::byte* scales = body.bytes + first / kElements;
  const std::byte* codes =
      body.bytes + (body.elements + kElements - 1) / kElements + first / kElements * Block::kShape.bytes;
  for (; count >= kElements; count -= kElements, out += kElements, codes += Block::kShape.bytes) {
    Block::unpack(codes, Scale::scale_of(*scales), out, into);
    ++scales;
  }
  if (count == 0) return;
  float last[kElements];
  Block::unpack(codes, Scale::scale_of(*scales), last, Set{});
  for (std::size_t i = 0; i < count; ++i) into(out[i], last[i]);
}

// --- by codec ---

template <bool kResidual, bool kLeft>
void encode_as(CodecId codec, const float* values, const float* residual, std::size_t count, std::byte* body,
               float* left) noexcept {
  switch (codec) {
    case CodecId::fp32:
      for (std::size_t i = 0; i < count; ++i) {
        const float value = kResidual ? values[i] + residual[i] : values[i];
        __builtin_memcpy(body + sizeof(float) * i, &value, sizeof value);
        if constexpr (kLeft) left[i] = 0;
      }
      return;
    case CodecId::bf16:
      return encode_bf16<kResidual, kLeft>(values, residual, count, body, left);
    case CodecId::int8:
      return encode_blocks<Int8, kResidual, kLeft>(values, residual, count, body, left);
    case CodecId::int4:
      return encode_blocks<Int4, kResidual, kLeft>(values, residual, count, body, left);
  }
}

void encode_any(CodecId codec, const float* values, const float* residual, std::size_t count, std::byte* body,
                float* left) noexcept {
  if (residual != nullptr)
    left != nullptr ? encode_as<true, true>(codec, values, residual, count, body, left)
                    : encode_as<true, false>(codec, values, residual, count, body, left);
  else
    left != nullptr ? encode_as<false, true>(codec, values, residual, count, body, left)
                    : encode_as<false, false>(codec, values, residual, count, body, left);
}

template <class Into>
void decode_as(const Body& body, std::size_t first, std::size_t count, float* __restrict out) noexcept {
  switch (body.codec) {
    case CodecId::fp32: {
      const std::byte* __restrict from = body.bytes + sizeof(float) * first;
      for (std::size_t i = 0; i < count; ++i) {
        float value = 0;
        __builtin_memcpy(&value, from + sizeof(float) * i, sizeof value);
        Into{}(out[i], value);
      }
      return;
    }
    case CodecId::bf16:
      return decode_bf16(body.bytes + 2 * first, count, out, Into{});
    case CodecId::int8:
      return decode_blocks<Int8, HalfSteps>(body, first, count, out, Into{});
    case CodecId::int4:
      return decode_blocks<Int4, HalfSteps>(body, first, count, out, Into{});
  }
}

/// By the scales: as much as the codes of a block can say. Every block has one, of zeros too.
template <class Block>
float largest_block(const Body& body) noexcept {
  std::int32_t largest = 0;
  const std::size_t blocks = (body.elements + Block::kShape.elements - 1) / Block::kShape.elements;
  for (std::size_t i = 0; i < blocks; ++i) {
    const auto byte = static_cast<std::int32_t>(body.bytes[i]);
    largest = byte > largest ? byte : largest;
  }
  const auto byte = static_cast<std::byte>(largest);
  return byte == HalfSteps::kMark ? float_of(kExponent) : HalfSteps::scale_of(byte) * (Block::kLevels + 1);
}

// Magnitudes order as their bits do, infinity and NaN above all.
float largest_any(const Body& body) noexcept {
  std::int32_t largest = 0;
  switch (body.codec) {
    case CodecId::fp32:
      for (std::size_t i = 0; i < body.elements; ++i) {
        std::int32_t bits = 0;
        __builtin_memcpy(&bits, body.bytes + sizeof bits * i, sizeof bits);
        bits &= static_cast<std::int32_t>(kNoSign);
        largest = bits > largest ? bits : largest;
      }
      break;
    case CodecId::bf16:
      for (std::size_t i = 0; i < body.elements; ++i) {
        const std::int32_t bits = load16(body.bytes + 2 * i) & 0x7FFF;
        largest = bits > largest ? bits : largest;
      }
      largest <<= 16;
      break;
    case CodecId::int8:
      return largest_block<Int8>(body);
    case CodecId::int4:
      return largest_block<Int4>(body);
  }
  const auto bits = static_cast<Bits32>(largest);
  return float_of(bits > kExponent ? kExponent : bits);
}

// --- deltas ---

// In loops of one width each: of numbers of two widths at once compilers make no vectors.
bool encode_delta_bf16(const float* __restrict target, const float* __restrict base, std::size_t count,
                       std::byte* __restrict body, float* __restrict moved) noexcept {
  constexpr std::size_t kPiece = 256;
  Bits32 codes[kPiece];
  Bits32 bad = 0;
  for (std::size_t first = 0; first < count; first += kPiece) {
    const std::size_t width = count - first < kPiece ? count - first : kPiece;
    for (std::size_t i = 0; i < width; ++i) {
      const Bits32 bits = bits_of(target[first + i] - base[first + i]);
      codes[i] = (bits & kNoSign) < Bits32{PowerOfTwo::kMin} << 16 ? 0 : Bits32{narrowed(bits)};
    }
    for (std::size_t i = 0; i < width; ++i) {
      bad |= (codes[i] & 0x7FFFU) + 0x80U;  // of 0x7F80 and above that has the highest bit
      moved[first + i] = base[first + i] + float_of(codes[i] << 16);
    }
    for (std::size_t i = 0; i < width; ++i) store16(body + 2 * (first + i), static_cast<Bits16>(codes[i]));
  }
  return (bad & 0x8000U) == 0;
}

// What is added is what a reader finds, by the same loop.
template <class Block>
bool encode_delta_blocks(const float* __restrict target, const float* __restrict base, std::size_t count,
                         std::byte* __restrict body, float* __restrict moved) noexcept {
  constexpr std::size_t kElements = Block::kShape.elements;
  std::byte* codes = body + (count + kElements - 1) / kElements;
  float wanted[kElements], found[kElements];
  bool finite = true;
  for (std::size_t first = 0; first < count; first += kElements) {
    const std::size_t width = count - first < kElements ? count - first : kElements;
    for (std::size_t i = 0; i < width; ++i) wanted[i] = target[first + i] - base[first + i];
    for (std::size_t i = width; i < kElements; ++i) wanted[i] = 0;
    const Bits16 scale = encode_block<Block, PowerOfTwo, false>(wanted, codes, nullptr);
    finite = finite && scale != kNotFinite;
    *body = PowerOfTwo::byte_of(scale);
    Block::unpack(codes, PowerOfTwo::scale_of(*body), found, Set{});
    for (std::size_t i = 0; i < width; ++i) moved[first + i] = base[first + i] + found[i];
    ++body;
    codes += Block::kShape.bytes;
  }
  return finite;
}

bool encode_delta_any(CodecId codec, const float* target, const float* base, std::size_t count, std::byte* body,
                      float* moved) noexcept {
  if (codec == CodecId::bf16) return encode_delta_bf16(target, base, count, body, moved);
  if (codec == CodecId::int8) return encode_delta_blocks<Int8>(target, base, count, body, moved);
  if (codec == CodecId::int4) return encode_delta_blocks<Int4>(target, base, count, body, moved);
  return false;
}

template <class Decode>
void add_in_pieces(std::size_t count, const float* __restrict base, float* __restrict moved, Decode decode) noexcept {
  constexpr std::size_t kPiece = 1024;  // stays in the cache between copying and adding
  for (std::size_t first = 0; first < count; first += kPiece) {
    const std::size_t width = count - first < kPiece ? count - first : kPiece;
    for (std::size_t i = 0; i < width; ++i) moved[first + i] = base[first + i];
    decode(first, width, moved + first);
  }
}

template <class Block>
bool add_delta_blocks(const Body& body, const float* base, float* moved) noexcept {
  Bits32 bad = 0;
  const std::size_t blocks = (body.elements + Block::kShape.elements - 1) / Block::kShape.elements;
  for (std::size_t i = 0; i < blocks; ++i) {
    const auto exponent = static_cast<Bits32>(body.bytes[i]);
    bad |= static_cast<Bits32>(exponent != 0) & (static_cast<Bits32>(exponent < PowerOfTwo::kByteMin) |
                                                 static_cast<Bits32>(exponent > PowerOfTwo::kByteMax));
  }
  if (bad != 0) return false;
  add_in_pieces(body.elements, base, moved, [&](std::size_t first, std::size_t count, float* sum) {
    decode_blocks<Block, PowerOfTwo>(body, first, count, sum, Add{});
  });
  return true;
}

bool add_delta_any(const Body& body, const float* base, float* moved) noexcept {
  if (body.codec == CodecId::int8) return add_delta_blocks<Int8>(body, base, moved);
  if (body.codec == CodecId::int4) return add_delta_blocks<Int4>(body, base, moved);
  if (body.codec != CodecId::bf16 || bits_of(largest_any(body)) == kExponent) return false;
  add_in_pieces(body.elements, base, moved, [&](std::size_t first, std::size_t count, float* sum) {
    decode_bf16(body.bytes + 2 * first, count, sum, Add{});
  });
  return true;
}

constexpr Kernels make_kernels(const char* name) noexcept {
  return {name, encode_any, decode_as<Set>, decode_as<Add>, largest_any, encode_delta_any, add_delta_any};
}

}  // namespace
}  // namespace motley::codec
