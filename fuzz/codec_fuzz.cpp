// Bodies of the codecs: a length that does not fit is refused, and what says it is finite decodes to finite numbers, at
// once or piece by piece; a delta moves weights to finite ones or is refused. Input: the codec (plus 4: a delta), the
// number of elements in two bytes, the body.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "base/assert.h"
#include "codec/codec.h"
#include "codec/delta.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace motley::codec;
  if (size < 3) return 0;
  const auto codec = static_cast<CodecId>(data[0] % 4);
  const std::size_t elements = data[1] + std::size_t{256} * data[2];
  const auto body = std::as_bytes(std::span(data, size).subspan(3));
  if (data[0] % 8 >= 4) {
    if (codec == CodecId::fp32) return 0;
    std::vector<float> moved(elements);
    const bool sound = add_delta(codec, body, std::vector<float>(elements, 1.0F), moved);
    MOTLEY_ASSERT(!sound || body.size() == encoded_bytes(codec, elements));
    MOTLEY_ASSERT(std::all_of(moved.begin(), moved.end(), [](float value) { return std::isfinite(value); }));
    return 0;
  }
  const auto encoded = Encoded::make(codec, body, elements);
  MOTLEY_ASSERT(encoded.has_value() == (body.size() == encoded_bytes(codec, elements)));
  if (!encoded) return 0;
  std::vector<float> whole(elements), sum(elements);
  encoded->decode(0, whole);
  encoded->add_to(0, sum);
  if (!encoded->finite()) return 0;
  MOTLEY_ASSERT(std::all_of(whole.begin(), whole.end(), [](float value) { return std::isfinite(value); }));
  MOTLEY_ASSERT(sum == whole);
  for (std::size_t first = 0; first < elements; first += Encoded::kStride) {
    std::vector<float> part(std::min(Encoded::kStride, elements - first));
    encoded->decode(first, part);
    MOTLEY_ASSERT(std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(first)));
  }
  return 0;
}
