#include "builtin/sample_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/assert.h"
#include "base/philox.h"

namespace motley::builtin {
namespace {

constexpr std::size_t kBytes = 256;

char choose(std::span<const float> logits, const SampleRequest& request, Philox& random) {
  std::array<std::size_t, kBytes> order{};
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto rank = [&](std::size_t byte) {  // what is no number comes last
    return std::pair(std::isnan(logits[byte]) ? std::numeric_limits<float>::infinity() : -logits[byte], byte);
  };
  std::ranges::sort(order, {}, rank);
  if (request.temperature <= 0) return static_cast<char>(order[0]);
  const std::size_t kept = request.top_k == 0 ? kBytes : std::min<std::size_t>(request.top_k, kBytes);
  std::array<double, kBytes> weights{};
  double total = 0;
  for (std::size_t i = 0; i < kept; ++i) {
    const double below_best = static_cast<double>(logits[order[i]]) - static_cast<double>(logits[order[0]]);
    weights[i] = std::exp(below_best / request.temperature);
    total += weights[i];
  }
  double left = random.uniform() * total;
  std::size_t chosen = 0;
  while (chosen + 1 < kept && left >= weights[chosen]) left -= weights[chosen++];
  return static_cast<char>(order[chosen]);
}

}  // namespace

Status sample_text(const SampleRequest& request, std::size_t block, const Logits& logits,
                   const std::function<bool(char)>& on_byte) {
  MOTLEY_ASSERT(!request.prompt.empty() && block > 0);
  Philox random(request.seed);
  std::string text = request.prompt;
  std::array<float, kBytes> next{};
  for (std::uint64_t i = 0; i < request.bytes; ++i) {
    const std::size_t length = std::min(block, text.size());
    if (Status status = logits(std::string_view(text).substr(text.size() - length), next); !status) return status;
    text += choose(next, request, random);
    if (!on_byte(text.back())) return {};
  }
  return {};
}

}  // namespace motley::builtin
