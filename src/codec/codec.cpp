#include "codec/codec.h"

#include <algorithm>
#include <array>

#include "base/assert.h"
#include "codec/delta.h"
#include "codec/kernels.h"
#include "machine/instruction_set.h"

namespace motley::codec {
namespace {

constexpr std::array<std::string_view, 4> kWords = {"fp32", "bf16", "int8", "int4"};

std::size_t bytes_of(BlockShape shape, std::size_t elements) noexcept {
  return (elements + shape.elements - 1) / shape.elements * (1 + shape.bytes);
}

#if defined(__x86_64__)
constexpr std::array<const Kernels*, 3> kAll = {&kPortable, &kAvx2, &kAvx512};
#else
constexpr std::array<const Kernels*, 1> kAll = {&kPortable};
#endif

const Kernels& best() noexcept {
  static const Kernels& chosen = *kernels().back();
  return chosen;
}

}  // namespace

std::span<const Kernels* const> kernels() noexcept { return std::span(kAll).first(machine::instruction_sets()); }

std::string_view to_word(CodecId codec) noexcept { return kWords[static_cast<std::size_t>(codec)]; }

std::optional<CodecId> from_word(std::string_view word) noexcept {
  const auto at = std::find(kWords.begin(), kWords.end(), word);
  if (at == kWords.end()) return std::nullopt;
  return static_cast<CodecId>(at - kWords.begin());
}

double error_bound(CodecId codec, double magnitude) noexcept {
  constexpr double kSmallest = 0x1p-64;  // blocks of nothing larger than that may become zero
  switch (codec) {
    case CodecId::fp32:
      return 0;
    case CodecId::bf16:
      return std::max(magnitude / 256, 0x1p-134);
    case CodecId::int8:
      return std::max(magnitude / 169, kSmallest);
    case CodecId::int4:
      return std::max(magnitude / 9.33, kSmallest);
  }
  return 0;
}

double delta_error_bound(CodecId codec, double magnitude) noexcept {
  constexpr double kSmallest = 0x1p-100;  // differences no larger than that may be left out
  switch (codec) {
    case CodecId::fp32:
      return 0;
    case CodecId::bf16:
      return std::max(magnitude / 256, kSmallest);
    case CodecId::int8:
      return std::max(magnitude / 127, kSmallest);
    case CodecId::int4:
      return std::max(magnitude / 7, kSmallest);
  }
  return 0;
}

std::size_t encoded_bytes(CodecId codec, std::size_t elements) noexcept {
  switch (codec) {
    case CodecId::fp32:
      return elements * sizeof(float);
    case CodecId::bf16:
      return elements * 2;
    case CodecId::int8:
      return bytes_of(kInt8Block, elements);
    case CodecId::int4:
      return bytes_of(kInt4Block, elements);
  }
  return 0;
}

void encode(CodecId codec, std::span<const float> values, std::span<const float> residual, std::span<std::byte> body,
            std::span<float> left) noexcept {
  MOTLEY_ASSERT(residual.empty() || residual.size() == values.size());
  MOTLEY_ASSERT(left.empty() || left.size() == values.size());
  MOTLEY_ASSERT(body.size() == encoded_bytes(codec, values.size()));
  best().encode(codec, values.data(), residual.empty() ? nullptr : residual.data(), values.size(), body.data(),
                left.empty() ? nullptr : left.data());
}

bool encode_delta(CodecId codec, std::span<const float> target, std::span<const float> base, std::span<std::byte> body,
                  std::span<float> moved) noexcept {
  MOTLEY_ASSERT(codec != CodecId::fp32);
  MOTLEY_ASSERT(base.size() == target.size() && moved.size() == target.size());
  MOTLEY_ASSERT(body.size() == encoded_bytes(codec, target.size()));
  return best().encode_delta(codec, target.data(), base.data(), target.size(), body.data(), moved.data());
}

bool add_delta(CodecId codec, std::span<const std::byte> body, std::span<const float> base, std::span<float> moved,
               const Kernels* set) noexcept {
  MOTLEY_ASSERT(moved.size() == base.size());
  if (body.size() != encoded_bytes(codec, base.size())) return false;
  return (set != nullptr ? *set : best()).add_delta({codec, body.data(), base.size()}, base.data(), moved.data());
}

std::optional<Encoded> Encoded::make(CodecId codec, std::span<const std::byte> body, std::size_t elements) noexcept {
  if (body.size() != encoded_bytes(codec, elements)) return std::nullopt;
  return Encoded(codec, body, elements);
}

float Encoded::largest() const noexcept { return best().largest({codec_, body_.data(), elements_}); }

void Encoded::decode(std::size_t first, std::span<float> out) const noexcept {
  MOTLEY_ASSERT(first % kStride == 0 && first <= elements_ && out.size() <= elements_ - first);
  best().decode({codec_, body_.data(), elements_}, first, out.size(), out.data());
}

void Encoded::add_to(std::size_t first, std::span<float> sum) const noexcept {
  MOTLEY_ASSERT(first % kStride == 0 && first <= elements_ && sum.size() <= elements_ - first);
  best().add({codec_, body_.data(), elements_}, first, sum.size(), sum.data());
}

}  // namespace motley::codec
