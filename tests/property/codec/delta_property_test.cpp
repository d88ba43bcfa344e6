#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/philox.h"
#include "codec/delta.h"
#include "codec/kernels.h"
#include "codec_blocks.h"

namespace motley::codec {
namespace {

constexpr std::size_t kCount = 700;

CodecId any_lossy_codec() { return *rc::gen::element(CodecId::bf16, CodecId::int8, CodecId::int4); }

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// Holds what deltas led to so far, or has missed one.
struct Replica {
  const Kernels* set = nullptr;
  std::vector<float> weights;
  bool holds = false;
};

// Whoever holds a version holds the next, whatever its processor; who missed one gets it whole. And it stays close.
RC_GTEST_PROP(Delta, ReplicasAreTheSameBits, (std::uint64_t seed)) {
  const CodecId codec = any_lossy_codec();
  Philox random(seed, 0);
  std::vector<float> exact(kCount), held, moved(kCount);
  for (float& value : exact) value = static_cast<float>(random.gaussian());
  held = exact;
  std::vector<Replica> replicas;
  for (const Kernels* set : kernels()) replicas.push_back({.set = set, .weights = {}, .holds = false});
  std::vector<std::byte> body(encoded_bytes(codec, kCount));
  const int steps = *rc::gen::inRange(1, 60);
  for (int step = 0; step < steps; ++step) {
    const double rate = std::pow(0.9, step);
    std::vector<double> bound(kCount);
    for (float& value : exact) value -= static_cast<float>(rate * 0.1 * random.gaussian());
    for (std::size_t first = 0; first < kCount; first += block_of(codec)) {
      const std::size_t end = std::min(kCount, first + block_of(codec));
      double largest = 0;
      for (std::size_t i = first; i < end; ++i) largest = std::max(largest, std::abs(double{exact[i]} - held[i]));
      for (std::size_t i = first; i < end; ++i)
        bound[i] = delta_error_bound(codec, largest) + 0x1p-23 * (std::abs(double{exact[i]}) + largest);
    }
    RC_ASSERT(encode_delta(codec, exact, held, body, moved));
    for (Replica& replica : replicas) {
      if (random.below(8) == 0) replica.holds = false;  // left, or a step did not come
      if (replica.holds) {
        std::vector<float> next(kCount);
        RC_ASSERT(add_delta(codec, body, replica.weights, next, replica.set));
        replica.weights = std::move(next);
      } else if (random.below(2) == 0) {
        replica.weights = moved;
        replica.holds = true;
      }
      RC_ASSERT(!replica.holds || same_bits(replica.weights, moved));
    }
    held = moved;
    for (std::size_t i = 0; i < kCount; ++i) RC_ASSERT(std::abs(double{exact[i]} - held[i]) <= bound[i]);
  }
}

RC_GTEST_PROP(Delta, HostileBodiesAreRefusedOrMoveToNumbers, (std::vector<std::uint8_t> bytes, std::uint16_t count)) {
  const CodecId codec = any_lossy_codec();
  const std::vector<float> base(count % 1000, 1.0F);
  bytes.resize(*rc::gen::arbitrary<bool>() ? encoded_bytes(codec, base.size()) : bytes.size());
  std::vector<float> moved(base.size(), 7.0F);
  if (add_delta(codec, std::as_bytes(std::span(bytes)), base, moved)) {
    RC_ASSERT(std::all_of(moved.begin(), moved.end(), [](float value) { return std::isfinite(value); }));
  } else {
    RC_ASSERT(moved == std::vector<float>(base.size(), 7.0F));
  }
}

}  // namespace
}  // namespace motley::codec
