#include "base/philox.h"

namespace motley {

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key) noexcept {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53U} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57U} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9U;
    key[1] += 0xBB67AE85U;
  }
  return counter;
}

std::uint64_t mixed_seed(std::uint64_t seed, std::uint64_t version, std::uint64_t position) noexcept {
  const auto low = [](std::uint64_t v) { return static_cast<std::uint32_t>(v); };
  const auto high = [](std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); };
  const auto block = philox4x32({low(version), high(version), low(position), high(position)}, {low(seed), high(seed)});
  return (static_cast<std::uint64_t>(block[1]) << 32) | block[0];
}

std::uint32_t Philox::next_u32() noexcept {
  if (used_ == 4) {
    block_ = philox4x32({static_cast<std::uint32_t>(counter_), static_cast<std::uint32_t>(counter_ >> 32),
                         static_cast<std::uint32_t>(stream_), static_cast<std::uint32_t>(stream_ >> 32)},
                        {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
    ++counter_;
    used_ = 0;
  }
  return block_[used_++];
}

std::uint64_t Philox::next_u64() noexcept {
  const std::uint64_t low = next_u32();
  return low | (std::uint64_t{next_u32()} << 32);
}

std::uint64_t Philox::below(std::uint64_t bound) noexcept {
  const std::uint64_t reject_below = (0 - bound) % bound;
  std::uint64_t value = next_u64();
  while (value < reject_below) value = next_u64();
  return value % bound;
}

double Philox::uniform() noexcept { return static_cast<double>(next_u64() >> 11) * 0x1.0p-53; }

double Philox::gaussian() noexcept {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += uniform();
  return sum;
}

}  // namespace motley
