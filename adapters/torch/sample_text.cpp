#include <algorithm>

#include "base/assert.h"
#include "machine/processor.h"
#include "torch/guard.h"
#include "torch/model.h"

namespace motley::torch_adapter {

Status sample_text(const ModelSpec& model, const Layout& layout, std::span<const SharedBytes> weights,
                   const SampleRequest& request, const std::function<bool(char)>& on_byte) {
  MOTLEY_ASSERT(model.kind == "gpt-mini");
  return guarded("sampling from the model", [&]() -> Status {
    at::set_num_threads(static_cast<int>(machine::allowed_processors()));
    const Result<std::unique_ptr<Model>> restored = restore_model(model, layout, weights, {}, 0);
    if (!restored) return restored.error();
    const at::NoGradGuard no_grad;
    const auto logits = [&](std::string_view window, std::span<float> to) -> Status {
      at::Tensor x = at::empty({1, static_cast<std::int64_t>(window.size())}, at::kFloat);
      std::transform(window.begin(), window.end(), x.data_ptr<float>(),
                     [](char c) { return static_cast<float>(static_cast<unsigned char>(c)); });
      const at::Tensor found = (*restored)->forward(x).select(1, -1).contiguous();
      std::copy_n(found.const_data_ptr<float>(), to.size(), to.begin());
      return {};
    };
    return builtin::sample_text(request, static_cast<std::size_t>(model.gpt.block), logits, on_byte);
  });
}

}  // namespace motley::torch_adapter
