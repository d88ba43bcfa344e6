// What the codecs do on one core, beside a memcpy of the same floats. Prints JSON: gigabytes of fp32 a second, the best
// of several rounds, for every instruction set that this processor has.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/philox.h"
#include "codec/kernels.h"

namespace {

using motley::codec::CodecId;
using motley::codec::Kernels;

constexpr std::size_t kElements = std::size_t{1} << 24;
constexpr int kRounds = 7;

template <class Work>
double gigabytes_per_second(Work work) {
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    best = std::max(best, static_cast<double>(kElements * sizeof(float)) / took.count() / 1e9);
  }
  return best;
}

std::vector<float> numbers() {
  motley::Philox random(1, 2);
  std::vector<float> result(kElements);
  for (float& value : result) value = static_cast<float>(random.next_u32()) * 0x1p-31F - 1;
  return result;
}

}  // namespace

int main() {
  const std::vector<float> values = numbers(), residual = numbers();
  std::vector<float> left(kElements), sum(kElements);
  std::vector<std::byte> body(kElements * sizeof(float));
  const double copy = gigabytes_per_second([&] { std::memcpy(sum.data(), values.data(), kElements * sizeof(float)); });
  std::printf("{\"event\":\"codec_bench\",\"elements\":%zu,\"memcpy_gb_s\":%.1f,\"kernels\":[", kElements, copy);
  const char* comma = "";
  for (const Kernels* set : motley::codec::kernels()) {
    for (const CodecId codec : {CodecId::bf16, CodecId::int8, CodecId::int4}) {
      const double plain =
          gigabytes_per_second([&] { set->encode(codec, values.data(), nullptr, kElements, body.data(), nullptr); });
      const double feedback = gigabytes_per_second(
          [&] { set->encode(codec, values.data(), residual.data(), kElements, body.data(), left.data()); });
      const motley::codec::Body encoded{codec, body.data(), kElements};
      const double decode = gigabytes_per_second([&] { set->decode(encoded, 0, kElements, sum.data()); });
      const double add = gigabytes_per_second([&] { set->add(encoded, 0, kElements, sum.data()); });
      const double make = gigabytes_per_second([&] {
        if (!set->encode_delta(codec, values.data(), residual.data(), kElements, body.data(), left.data()))
          std::abort();
      });
      const double move = gigabytes_per_second([&] {
        if (!set->add_delta(encoded, residual.data(), sum.data())) std::abort();
      });
      std::printf(
          "%s\n{\"set\":\"%s\",\"codec\":\"%s\",\"encode_gb_s\":%.1f,\"encode_feedback_gb_s\":%.1f,\"decode_gb_s\":%."
          "1f,"
          "\"decode_add_gb_s\":%.1f,\"encode_delta_gb_s\":%.1f,\"add_delta_gb_s\":%.1f}",
          comma, set->name, motley::codec::to_word(codec).data(), plain, feedback, decode, add, make, move);
      comma = ",";
    }
  }
  std::printf("\n]}\n");
}
