#include "data/order.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>

#include "base/assert.h"
#include "base/philox.h"

namespace motley::data {
namespace {

constexpr unsigned kRounds = 6;
constexpr unsigned kHalfBitsMin = 4;     // below 256 values a Feistel network reaches too few permutations
constexpr unsigned kTableHalfBits = 14;  // up to 268 million samples; the table is at most 192 KiB
// Keeps the counters apart from those of class Philox, which counts up from zero in the first two words.
constexpr std::uint32_t kRoundTag = 0x4F524400U;  // "ORD", then the number of the round
constexpr std::size_t kLanes = 8;                 // independent Philox chains that hide each other's latency
constexpr std::size_t kBlock = 64;

std::uint32_t low(std::uint64_t value) noexcept { return static_cast<std::uint32_t>(value); }
std::uint32_t high(std::uint64_t value) noexcept { return static_cast<std::uint32_t>(value >> 32); }

// The first word of philox4x32 for kLanes counters that differ in their first word only; equal to calling it kLanes
// times, and several times as fast.
void philox_lanes(std::array<std::uint32_t, kLanes>& first, std::array<std::uint32_t, 3> rest, std::uint64_t seed) {
  std::array<std::uint32_t, kLanes> c0 = first;
  std::array<std::uint32_t, kLanes> c1{};
  std::array<std::uint32_t, kLanes> c2{};
  std::array<std::uint32_t, kLanes> c3{};
  c1.fill(rest[0]);
  c2.fill(rest[1]);
  c3.fill(rest[2]);
  std::uint32_t key0 = low(seed);
  std::uint32_t key1 = high(seed);
  for (int round = 0; round < 10; ++round) {
    for (std::size_t i = 0; i < kLanes; ++i) {
      const std::uint64_t a = std::uint64_t{0xD2511F53U} * c0[i];
      const std::uint64_t b = std::uint64_t{0xCD9E8D57U} * c2[i];
      c0[i] = high(b) ^ c1[i] ^ key0;
      c1[i] = low(b);
      c2[i] = high(a) ^ c3[i] ^ key1;
      c3[i] = low(a);
    }
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
  first = c0;
}

}  // namespace

SampleOrder::SampleOrder(std::uint64_t seed, std::uint64_t epoch, std::uint64_t size, bool shuffle)
    : seed_(seed), epoch_(epoch), size_(size), shuffle_(shuffle) {
  MOTLEY_ASSERT(size > 0 && size <= kSizeMax);
  if (!shuffle_) return;
  half_bits_ = kHalfBitsMin;
  while ((std::uint64_t{1} << (2 * half_bits_)) < size) ++half_bits_;
  if (half_bits_ > kTableHalfBits) return;
  const std::uint32_t halves = 1U << half_bits_;
  rounds_.reserve(std::size_t{kRounds} * halves);
  std::array<std::uint32_t, kLanes> lanes{};
  for (unsigned round = 0; round < kRounds; ++round) {
    for (std::uint32_t half = 0; half < halves; half += kLanes) {
      std::iota(lanes.begin(), lanes.end(), half);
      philox_lanes(lanes, {kRoundTag + round, low(epoch_), high(epoch_)}, seed_);
      for (const std::uint32_t word : lanes) rounds_.push_back(static_cast<std::uint16_t>(word & (halves - 1)));
    }
  }
}

void SampleOrder::encrypt_by_table(std::span<std::uint64_t> values) const noexcept {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  for (std::uint64_t& value : values) {
    std::uint64_t left = value >> half_bits_;
    std::uint64_t right = value & mask;
    const std::uint16_t* table = rounds_.data();
    for (unsigned round = 0; round < kRounds; ++round, table += mask + 1) {
      left ^= table[right];
      std::swap(left, right);
    }
    value = (left << half_bits_) | right;
  }
}

void SampleOrder::encrypt_by_lanes(std::span<std::uint64_t> values) const noexcept {
  const std::uint32_t mask = (1U << half_bits_) - 1;
  std::array<std::uint32_t, kLanes> left{};
  std::array<std::uint32_t, kLanes> right{};
  for (std::size_t at = 0; at < values.size(); at += kLanes) {
    const std::size_t count = std::min(kLanes, values.size() - at);
    for (std::size_t i = 0; i < count; ++i) {
      left[i] = low(values[at + i] >> half_bits_);
      right[i] = low(values[at + i]) & mask;
    }
    for (unsigned round = 0; round < kRounds; ++round) {
      std::array<std::uint32_t, kLanes> word = right;
      philox_lanes(word, {kRoundTag + round, low(epoch_), high(epoch_)}, seed_);
      for (std::size_t i = 0; i < kLanes; ++i) word[i] = left[i] ^ (word[i] & mask);
      left = right;
      right = word;
    }
    for (std::size_t i = 0; i < count; ++i) values[at + i] = (std::uint64_t{left[i]} << half_bits_) | right[i];
  }
}

void SampleOrder::encrypt(std::span<std::uint64_t> values) const noexcept {
  rounds_.empty() ? encrypt_by_lanes(values) : encrypt_by_table(values);
}

std::uint64_t SampleOrder::at(std::uint64_t position) const noexcept {
  std::uint64_t value = position;
  fill(position, {&value, 1});
  return value;
}

void SampleOrder::fill(std::uint64_t first, std::span<std::uint64_t> out) const noexcept {
  MOTLEY_ASSERT(first <= size_ && out.size() <= size_ - first);
  std::iota(out.begin(), out.end(), first);
  if (!shuffle_) return;
  std::array<std::uint64_t, kBlock> walking{};
  std::array<std::size_t, kBlock> slot{};
  for (std::size_t begin = 0; begin < out.size(); begin += kBlock) {
    const std::span<std::uint64_t> block = out.subspan(begin, std::min(kBlock, out.size() - begin));
    std::size_t left = block.size();
    std::copy(block.begin(), block.end(), walking.begin());
    std::iota(slot.begin(), slot.end(), std::size_t{0});
    while (left > 0) {  // values beyond the data set go through again; they cannot return to where they came from
      encrypt({walking.data(), left});
      std::size_t kept = 0;
      for (std::size_t i = 0; i < left; ++i) {
        block[slot[i]] = walking[i];
        if (walking[i] < size_) continue;
        walking[kept] = walking[i];
        slot[kept++] = slot[i];
      }
      left = kept;
    }
  }
}

std::vector<std::uint64_t> samples_at(std::span<const StepRange> spans, std::uint64_t seed, std::uint64_t size,
                                      bool shuffle) {
  std::uint64_t count = 0;
  for (const StepRange& span : spans) count += span.count;
  std::vector<std::uint64_t> samples(count);
  std::size_t filled = 0;
  for (const StepRange& span : spans) {
    SampleOrder(seed, span.epoch, size, shuffle)
        .fill(span.order_first, std::span(samples).subspan(filled, static_cast<std::size_t>(span.count)));
    filled += static_cast<std::size_t>(span.count);
  }
  return samples;
}

}  // namespace motley::data
