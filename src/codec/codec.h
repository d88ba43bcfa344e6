#pragma once
// How a stretch of floats becomes bytes on the wire, and floats again: docs/formats/wire.md has the bytes,
// docs/design/0016-codecs.md the reasons. Every processor makes the same bytes, and the same floats of them. Functions
// without state; any thread.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

namespace motley::codec {

/// As in the frame header.
enum class CodecId : std::uint8_t { fp32 = 0, bf16 = 1, int8 = 2, int4 = 3 };
inline constexpr CodecId kLastCodec = CodecId::int4;

std::string_view to_word(CodecId codec) noexcept;
std::optional<CodecId> from_word(std::string_view word) noexcept;

/// Most that a decoded element may be off, in a block (bf16: at an element) whose largest element is `magnitude`.
double error_bound(CodecId codec, double magnitude) noexcept;

/// The length of `elements` on the wire, of a delta (delta.h) too.
std::size_t encoded_bytes(CodecId codec, std::size_t elements) noexcept;

/// Encodes values + residual; `left` becomes what the bytes leave out of it. Where that sum is not finite (int8,
/// int4: or beyond 7 · 2^63), the bytes say so and `left` is zero. REQUIRES `residual` and `left` as long as
/// `values`, or empty; `body` of encoded_bytes(); nothing overlaps.
void encode(CodecId codec, std::span<const float> values, std::span<const float> residual, std::span<std::byte> body,
            std::span<float> left) noexcept;

/// Encoded elements, somewhere else.
class Encoded {
 public:
  /// Elements `first` onwards may be asked for where `first` is a multiple of it.
  static constexpr std::size_t kStride = 256;

  /// Empty unless `body` has the length that so many elements take.
  static std::optional<Encoded> make(CodecId codec, std::span<const std::byte> body, std::size_t elements) noexcept;
  explicit Encoded(std::span<const float> values) noexcept
      : codec_(CodecId::fp32), body_(std::as_bytes(values)), elements_(values.size()) {}

  [[nodiscard]] std::size_t elements() const noexcept { return elements_; }
  /// The largest magnitude (int8, int4: the most that the scales allow); infinity if any element is NaN, infinite, or
  /// of a block that says it was.
  [[nodiscard]] float largest() const noexcept;
  [[nodiscard]] bool finite() const noexcept { return largest() <= std::numeric_limits<float>::max(); }
  // REQUIRES first % kStride == 0 and first + out.size() <= elements().
  void decode(std::size_t first, std::span<float> out) const noexcept;
  /// sum += element, each product exact and each sum rounded once.
  void add_to(std::size_t first, std::span<float> sum) const noexcept;

 private:
  Encoded(CodecId codec, std::span<const std::byte> body, std::size_t elements) noexcept
      : codec_(codec), body_(body), elements_(elements) {}

  CodecId codec_;
  std::span<const std::byte> body_;
  std::size_t elements_;
};

}  // namespace motley::codec
