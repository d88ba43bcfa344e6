// Text from a trained gpt-mini, one byte after the other.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/assert.h"
#include "base/philox.h"
#include "torch/devices.h"
#include "torch/guard.h"
#include "torch/model.h"

namespace motley::torch_adapter {
namespace {

constexpr std::size_t kBytes = 256;

/// Draws with numbers of our own and not with torch's: they are the same with every version of it.
char choose(std::span<const float> logits, const SampleRequest& request, Philox& random) {
  std::array<std::size_t, kBytes> order{};
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
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

at::Tensor window_of(const std::string& text, std::size_t block) {
  const std::size_t length = std::min(block, text.size());
  at::Tensor x = at::empty({1, static_cast<std::int64_t>(length)}, at::kFloat);
  const std::string_view window = std::string_view(text).substr(text.size() - length);
  std::transform(window.begin(), window.end(), x.data_ptr<float>(),
                 [](char c) { return static_cast<float>(static_cast<unsigned char>(c)); });
  return x;
}

}  // namespace

Status sample_text(const ModelSpec& model, const Layout& layout, std::span<const SharedBytes> weights,
                   const SampleRequest& request, const std::function<bool(char)>& on_byte) {
  MOTLEY_ASSERT(model.kind == "gpt-mini" && !request.prompt.empty());
  return guarded("sampling from the model", [&]() -> Status {
    at::set_num_threads(static_cast<int>(usable_processors()));
    const Result<std::unique_ptr<Model>> restored = restore_model(model, layout, weights, {}, 0);
    if (!restored) return restored.error();
    const at::NoGradGuard no_grad;
    Philox random(request.seed);
    std::string text = request.prompt;
    for (std::uint64_t i = 0; i < request.bytes; ++i) {
      const at::Tensor logits =
          (*restored)->forward(window_of(text, static_cast<std::size_t>(model.gpt.block))).select(1, -1).contiguous();
      text += choose({logits.const_data_ptr<float>(), kBytes}, request, random);
      if (!on_byte(text.back())) return {};
    }
    return {};
  });
}

}  // namespace motley::torch_adapter
