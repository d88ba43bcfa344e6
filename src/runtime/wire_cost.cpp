#include "runtime/wire_cost.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <tuple>
#include <vector>

#include "codec/codec.h"
#include "codec/delta.h"
#include "machine/processor.h"
#include "machine/processor_time.h"
#include "transport/wire_cost.h"

namespace motley::runtime {
namespace {

using codec::CodecId;

constexpr std::size_t kElements = std::size_t{1} << 18;  // about a chunk
constexpr int kRounds = 5;

struct Arrays {
  Arrays() {
    for (std::size_t i = 0; i < kElements; ++i) {
      values[i] = std::sin(static_cast<float>(i));
      base[i] = values[i] + 1e-3F * std::cos(static_cast<float>(3 * i));
    }
  }
  std::vector<float> values = std::vector<float>(kElements), base = values, left = values, sum = values;
  std::vector<std::byte> body = std::vector<std::byte>(kElements * sizeof(float));
};

/// Seconds a byte of fp32; of the rounds the fastest.
template <class Work>
double seconds_of(Work work) {
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kRounds; ++i) {
    const double begun = machine::thread_time_s();
    work();
    least = std::min(least, machine::thread_time_s() - begun);
  }
  return least / static_cast<double>(kElements * sizeof(float));
}

void measure(CodecId codec, Arrays& a, plan::EndCost& cost) {
  const auto at = static_cast<std::size_t>(codec);
  const std::span body(a.body.data(), codec::encoded_bytes(codec, kElements));
  if (codec != CodecId::fp32) {
    cost.encode_delta[at] =
        seconds_of([&] { std::ignore = codec::encode_delta(codec, a.base, a.values, body, a.left); });
    cost.decode_delta[at] = seconds_of([&] { std::ignore = codec::add_delta(codec, body, a.values, a.left); });
    cost.encode[at] = seconds_of([&] { codec::encode(codec, a.values, a.base, body, a.left); });
  } else {
    codec::encode(codec, a.values, {}, body, {});
  }
  const auto encoded = codec::Encoded::make(codec, body, kElements);
  cost.decode_add[at] = seconds_of([&] { encoded->add_to(0, a.sum); });
}

}  // namespace

plan::EndCost measure_end_cost(bool encrypted, const std::string& device, unsigned threads) {
  const double processors = machine::usable_processors();
  const double computing = device != "cpu" ? 0 : threads > 0 ? threads : processors;
  const double factor = plan::computing_held_up(processors, computing);
  plan::EndCost cost;
  if (factor == 0) return cost;
  const transport::WireCost wire = transport::measure_wire_cost(encrypted, &machine::thread_time_s);
  cost.sent = wire.sent;
  cost.received = wire.received;
  Arrays arrays;
  for (const CodecId codec : {CodecId::fp32, CodecId::bf16, CodecId::int8, CodecId::int4}) measure(codec, arrays, cost);
  cost *= factor;
  return cost;
}

}  // namespace motley::runtime
