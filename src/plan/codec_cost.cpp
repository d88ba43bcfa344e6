#include "plan/codec_cost.h"

#include <algorithm>

namespace motley::plan {
namespace {

constexpr double kSlowest = 1e-5;  // seconds a byte; a tenth of a megabyte a second
constexpr std::size_t kTold = 8;

}  // namespace

EndCost& EndCost::operator*=(double factor) noexcept {
  sent *= factor;
  received *= factor;
  for (ByCodec* each : {&encode, &decode_add, &encode_delta, &decode_delta})
    for (double& seconds : *each) seconds *= factor;
  return *this;
}

std::vector<double> told(const EndCost& worker) {
  std::vector<double> numbers{worker.sent, worker.received};
  numbers.insert(numbers.end(), worker.encode.begin() + 1, worker.encode.end());
  numbers.insert(numbers.end(), worker.decode_delta.begin() + 1, worker.decode_delta.end());
  return numbers;
}

std::optional<EndCost> heard(std::span<const double> numbers) noexcept {
  const auto sound = [](double seconds) { return seconds >= 0 && seconds <= kSlowest; };
  if (numbers.size() != kTold || !std::ranges::all_of(numbers, sound)) return std::nullopt;
  EndCost cost{.sent = numbers[0], .received = numbers[1]};
  std::ranges::copy(numbers.subspan(2, 3), cost.encode.begin() + 1);
  std::ranges::copy(numbers.subspan(5, 3), cost.decode_delta.begin() + 1);
  return cost;
}

double computing_held_up(double processors, double threads) noexcept {
  if (!(threads > 0) || !(processors > 0)) return 0;
  // One more thread than processors: the one that has to do with the wire takes what the others lack.
  const double taken = std::clamp(threads + 1 - processors, 0.0, 1.0);
  return taken / std::min(processors, threads);
}

ByCodec held_up(const PassEnd& worker, const PassEnd& head, const ByCodec& bytes, OpenCodecs open) noexcept {
  ByCodec seconds{};
  const double whole = bytes[0];
  for (std::size_t c = 0; c < seconds.size(); ++c) {
    double at_worker = 0, at_head = 0;
    if (open.gradients) {
      at_worker += worker.cost.encode[c] * whole + worker.cost.sent * bytes[c];
      at_head += head.cost.decode_add[c] * whole + head.cost.received * bytes[c];
    }
    if (open.weights) {
      at_worker += worker.cost.decode_delta[c] * whole + worker.cost.received * bytes[c];
      at_head += head.cost.encode_delta[c] * whole + head.cost.sent * bytes[c];
    }
    seconds[c] = worker.part * at_worker + head.part * at_head;
  }
  return seconds;
}

}  // namespace motley::plan
