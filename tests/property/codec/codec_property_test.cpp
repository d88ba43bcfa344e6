#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "codec/codec.h"
#include "codec_blocks.h"

namespace motley::codec {
namespace {

CodecId any_codec() { return *rc::gen::element(CodecId::fp32, CodecId::bf16, CodecId::int8, CodecId::int4); }

/// Numbers of all sizes, most of them as gradients are.
std::vector<float> any_values() {
  const auto bits = *rc::gen::container<std::vector<std::uint32_t>>(*rc::gen::inRange<std::size_t>(0, 700),
                                                                    rc::gen::arbitrary<std::uint32_t>());
  const auto exponent = *rc::gen::inRange(0, 100);
  std::vector<float> values;
  for (const std::uint32_t each : bits)
    values.push_back(std::ldexp(static_cast<float>(static_cast<std::int32_t>(each)), -exponent));
  return values;
}

RC_GTEST_PROP(Codec, DecodedStaysInTheBudget, ()) {
  const CodecId codec = any_codec();
  const std::vector<float> values = any_values();
  std::vector<std::byte> body(encoded_bytes(codec, values.size()));
  std::vector<float> left(values.size()), found(values.size());
  encode(codec, values, {}, body, left);
  const auto encoded = Encoded::make(codec, body, values.size());
  RC_ASSERT(encoded.has_value());
  RC_ASSERT(encoded->finite());
  encoded->decode(0, found);
  for (std::size_t first = 0; first < values.size(); first += block_of(codec)) {
    const std::size_t end = std::min(values.size(), first + block_of(codec));
    double magnitude = 0;
    for (std::size_t i = first; i < end; ++i) magnitude = std::max(magnitude, std::abs(static_cast<double>(values[i])));
    for (std::size_t i = first; i < end; ++i) {
      RC_ASSERT(std::abs(static_cast<double>(found[i]) - values[i]) <= error_bound(codec, magnitude));
      RC_ASSERT(left[i] == values[i] - found[i]);
    }
  }
}

// What one lease leaves out the next one brings: the sum over many is off by what is left at the end, no more.
RC_GTEST_PROP(Codec, SumsTelescope, ()) {
  const CodecId codec = any_codec();
  constexpr std::size_t kCount = 300;
  std::vector<float> residual(kCount), left(kCount), found(kCount);
  std::vector<double> wanted(kCount), sum(kCount);
  std::vector<std::byte> body(encoded_bytes(codec, kCount));
  for (int step = 0; step < 12; ++step) {
    const auto values = *rc::gen::container<std::vector<float>>(
        kCount, rc::gen::map(rc::gen::inRange(-10000, 10000), [](int n) { return static_cast<float>(n) / 1024; }));
    encode(codec, values, residual, body, left);
    Encoded::make(codec, body, kCount)->decode(0, found);
    residual.swap(left);
    for (std::size_t i = 0; i < kCount; ++i) {
      wanted[i] += values[i];
      sum[i] += found[i];
    }
  }
  for (std::size_t i = 0; i < kCount; ++i)
    RC_ASSERT(std::abs(wanted[i] - sum[i] - static_cast<double>(residual[i])) < 1e-4);
}

RC_GTEST_PROP(Codec, HostileBodiesAreRefusedOrDecodeToNumbers, (std::vector<std::uint8_t> bytes, std::uint16_t count)) {
  const CodecId codec = any_codec();
  const std::size_t elements = *rc::gen::arbitrary<bool>() ? count % 1000 : bytes.size();
  bytes.resize(*rc::gen::arbitrary<bool>() ? encoded_bytes(codec, elements) : bytes.size());
  const auto encoded = Encoded::make(codec, std::as_bytes(std::span(bytes)), elements);
  RC_ASSERT(encoded.has_value() == (bytes.size() == encoded_bytes(codec, elements)));
  if (!encoded) return;
  std::vector<float> found(elements);
  encoded->decode(0, found);
  const bool numbers = std::all_of(found.begin(), found.end(), [](float value) { return std::isfinite(value); });
  RC_ASSERT(numbers || !encoded->finite());
}

}  // namespace
}  // namespace motley::codec
