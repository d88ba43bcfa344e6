#include "data/synthetic.h"

#include <array>
#include <bit>
#include <charconv>

#include "base/little_endian.h"
#include "base/philox.h"
#include "data/source/buffer.h"

namespace motley::data {
namespace {

constexpr std::uint64_t kSeed = 0x6D6F746C6579U;  // "motley"
constexpr std::uint64_t kElementsMax = std::uint64_t{1} << 31;
constexpr std::string_view kSyntheticPrefix = "synthetic:";

bool parse_fields(std::string_view text, std::array<std::uint64_t, 3>& fields) noexcept {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), fields[i]);
    if (failed != std::errc() || fields[i] == 0) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (i + 1 == fields.size()) return text.empty();
    if (!text.starts_with(':')) return false;
    text.remove_prefix(1);
  }
  return false;
}

// Close to gaussian, variance 1, within +-3.5: the sum of the four bytes of a word. One multiplication a sample value
// is all that a test can afford, and no libm makes it equal everywhere.
float noise(Philox& random) noexcept {
  const std::uint32_t word = random.next_u32();
  const std::uint32_t sum = (word & 0xFFU) + ((word >> 8) & 0xFFU) + ((word >> 16) & 0xFFU) + (word >> 24);
  return (static_cast<float>(sum) - 510.0F) / 147.8F;
}

}  // namespace

Result<Parts> make_synthetic(const std::string& uri, const std::string& part) {
  std::array<std::uint64_t, 3> fields{};
  if (!uri.starts_with(kSyntheticPrefix) ||
      !parse_fields(std::string_view(uri).substr(kSyntheticPrefix.size()), fields)) {
    return Error{ErrorCode::input,
                 "expected synthetic:SIZE:FEATURES:CLASSES with three numbers above zero, found '" + uri + "'",
                 "for example synthetic:10000:20:4"};
  }
  const auto [size, features, classes] = fields;
  if (size > kElementsMax / features || classes > static_cast<std::uint64_t>(kClassesMax) ||
      classes > kElementsMax / features) {
    return Error{
        ErrorCode::input,
        uri + ": expected at most 2^31 values in all and " + std::to_string(kClassesMax) + " classes, found more",
        "ask for less"};
  }
  Philox centre_random(kSeed, 0);
  std::vector<float> centres(classes * features);
  for (float& value : centres) value = noise(centre_random);

  Parts parts;
  parts.size = size;
  parts.sample_dtype = DType::f32;
  parts.sample_shape = {static_cast<std::int64_t>(features)};
  parts.classes.resize(size);
  Result<MutableBytes> buffer = allocate(size * features * sizeof(float), uri);
  if (!buffer) return std::move(buffer).error();
  std::byte* out = buffer->bytes().data();
  Philox random(kSeed, part == "test" ? 2 : 1);
  for (std::uint64_t i = 0; i < size; ++i) {
    const std::uint64_t number = i < classes ? i : random.below(classes);  // every class occurs if there is room
    parts.classes[i] = static_cast<std::int64_t>(number);
    const float* centre = &centres[number * features];
    for (std::uint64_t j = 0; j < features; ++j, out += sizeof(float)) {
      store_le(out, std::bit_cast<std::uint32_t>(centre[j] + noise(random)));
    }
  }
  parts.samples = std::move(*buffer).seal();
  return parts;
}

}  // namespace motley::data
