#include "softmax/blobs.h"

#include <bit>

#include "base/assert.h"
#include "base/format.h"
#include "base/little_endian.h"
#include "base/philox.h"
#include "base/xxh64.h"

namespace motley::softmax {
namespace {

constexpr std::uint64_t kSeed = 0x6D6F746C6579U;  // "motley"

// Close to gaussian, variance 1, within +-3.5: the sum of the four bytes of a word. One multiplication a value is all
// that a test can afford, and no libm makes it equal everywhere.
float noise(Philox& random) noexcept {
  const std::uint32_t word = random.next_u32();
  const std::uint32_t sum = (word & 0xFFU) + ((word >> 8) & 0xFFU) + ((word >> 16) & 0xFFU) + (word >> 24);
  return (static_cast<float>(sum) - 510.0F) / 147.8F;
}

template <class Word, class T>
std::uint64_t hash_of(const std::vector<T>& elements, std::uint64_t seed) {
  std::vector<std::byte> bytes(elements.size() * sizeof(T));
  for (std::size_t i = 0; i < elements.size(); ++i) store_le(&bytes[i * sizeof(T)], std::bit_cast<Word>(elements[i]));
  return xxh64(bytes, seed);
}

}  // namespace

Blobs::Blobs(const BlobSizes& sizes, Part part)
    : sizes_(sizes), samples_(sizes.samples * sizes.features), labels_(sizes.samples) {
  MOTLEY_ASSERT(sizes.samples > 0 && sizes.features > 0 && sizes.classes > 0);
  Philox centre_random(kSeed, 0);
  std::vector<float> centres(sizes.classes * sizes.features);
  for (float& value : centres) value = noise(centre_random);
  Philox random(kSeed, part == Part::test ? 2 : 1);
  float* out = samples_.data();
  for (std::uint64_t i = 0; i < sizes.samples; ++i) {
    labels_[i] = i < sizes.classes ? i : random.below(sizes.classes);  // every class occurs if there is room
    const float* centre = &centres[labels_[i] * sizes.features];
    for (std::uint64_t j = 0; j < sizes.features; ++j) *out++ = centre[j] + noise(random);
  }
  const std::uint64_t content = hash_of<std::uint64_t>(labels_, hash_of<std::uint32_t>(samples_, 0));
  fingerprint_ = std::to_string(sizes.samples) + " samples f32 [" + std::to_string(sizes.features) + "], " +
                 std::to_string(sizes.classes) + " classes, content " +
                 formatted("%016llx", static_cast<unsigned long long>(content));
}

std::span<const float> Blobs::sample(std::uint64_t number) const {
  MOTLEY_ASSERT(number < sizes_.samples);
  return std::span(samples_).subspan(number * sizes_.features, sizes_.features);
}

std::uint64_t Blobs::label(std::uint64_t number) const {
  MOTLEY_ASSERT(number < sizes_.samples);
  return labels_[number];
}

}  // namespace motley::softmax
