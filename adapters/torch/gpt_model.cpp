// A decoder-only transformer over bytes, as GPT-2 has it: pre-LayerNorm, learned positions, GELU, a head tied to the
// token embedding. Names and shapes are those of nanoGPT.
#include <cmath>

#include "torch/model.h"
#include "torch/save_script.h"

namespace motley::torch_adapter {
namespace {

constexpr std::int64_t kVocabulary = 256;
constexpr double kInitialDeviation = 0.02;
constexpr double kNormEpsilon = 1e-5;

// The forward pass is written twice, here for speed and as TorchScript for export; a test compares the two.
class Gpt final : public Model {
 public:
  explicit Gpt(const GptShape& shape) : shape_(shape) {
    const std::int64_t width = shape.width;
    // Each block adds to the residual stream twice, and the sum shall not grow with the number of blocks.
    const double residual = kInitialDeviation / std::sqrt(2.0 * static_cast<double>(shape.layers));
    add_drawn("transformer.wte.weight", {kVocabulary, width}, kInitialDeviation);
    add_drawn("transformer.wpe.weight", {shape.block, width}, kInitialDeviation);
    for (std::int64_t i = 0; i < shape.layers; ++i) {
      const std::string block = "transformer.h." + std::to_string(i) + ".";
      add_norm(block + "ln_1");
      add_linear(block + "attn.c_attn", width, 3 * width, kInitialDeviation);
      add_linear(block + "attn.c_proj", width, width, residual);
      add_norm(block + "ln_2");
      add_linear(block + "mlp.c_fc", width, 4 * width, kInitialDeviation);
      add_linear(block + "mlp.c_proj", 4 * width, width, residual);
    }
    add_norm("transformer.ln_f");
    tensors_.push_back({"lm_head.weight", tensors_[0].tensor, false, tensors_[0].name});
  }

  /// [n, T] byte values, T at most the block, to logits [n, T, 256].
  at::Tensor forward(const at::Tensor& x) override {
    TORCH_CHECK(x.dim() == 2 && x.size(1) <= shape_.block, "expected [n, at most ", shape_.block, "] bytes, found ",
                x.sizes());
    Cursor weights{tensors_};
    const at::Tensor tokens = weights.next();
    const at::Tensor positions = weights.next();
    at::Tensor h = at::embedding(tokens, x.to(at::kLong)) + positions.narrow(0, 0, x.size(1));
    for (std::int64_t i = 0; i < shape_.layers; ++i) {
      h = h + attend(normalise(h, weights), weights);
      const at::Tensor inner = at::gelu(linear(normalise(h, weights), weights), "tanh");
      h = h + linear(inner, weights);
    }
    return at::linear(normalise(h, weights), tokens);
  }
  void train(bool) override {}
  void to(const at::Device& device) override {
    for (NamedTensor& named : tensors_) {
      if (named.alias_of.empty()) named.tensor.set_data(named.tensor.to(device));
    }
  }
  const std::vector<NamedTensor>& tensors() const override { return tensors_; }
  bool draws_random_numbers() const override { return false; }
  bool mixes_samples() const override { return false; }
  Status save(const std::filesystem::path& path) override {
    save_script(tensors_, "Gpt", script(), path);
    return {};
  }

 private:
  /// Takes the parameters in the order in which the constructor adds them.
  struct Cursor {
    const std::vector<NamedTensor>& tensors;
    std::size_t at = 0;
    const at::Tensor& next() { return tensors[at++].tensor; }
  };

  void add(const std::string& name, at::Tensor tensor) {
    tensors_.push_back({name, tensor.requires_grad_(true), false, ""});
  }
  void add_drawn(const std::string& name, at::IntArrayRef shape, double deviation) {
    add(name, at::empty(shape, at::kFloat).normal_(0, deviation));
  }
  void add_linear(const std::string& name, std::int64_t in, std::int64_t out, double deviation) {
    add_drawn(name + ".weight", {out, in}, deviation);
    add(name + ".bias", at::zeros({out}, at::kFloat));
  }
  void add_norm(const std::string& name) {
    add(name + ".weight", at::ones({shape_.width}, at::kFloat));
    add(name + ".bias", at::zeros({shape_.width}, at::kFloat));
  }

  static at::Tensor linear(const at::Tensor& h, Cursor& weights) {
    const at::Tensor& weight = weights.next();
    return at::linear(h, weight, weights.next());
  }
  at::Tensor normalise(const at::Tensor& h, Cursor& weights) const {
    const at::Tensor& weight = weights.next();
    return at::layer_norm(h, {shape_.width}, weight, weights.next(), kNormEpsilon);
  }
  at::Tensor attend(const at::Tensor& h, Cursor& weights) const {
    const std::int64_t n = h.size(0), length = h.size(1);
    std::vector<at::Tensor> parts = linear(h, weights).split(shape_.width, 2);
    for (at::Tensor& part : parts) {
      part = part.view({n, length, shape_.heads, shape_.width / shape_.heads}).transpose(1, 2);
    }
    const at::Tensor mixed = at::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0.0, true);
    return linear(mixed.transpose(1, 2).contiguous().view({n, length, shape_.width}), weights);
  }
  [[nodiscard]] std::string script() const;

  GptShape shape_;
  std::vector<NamedTensor> tensors_;
};

std::string Gpt::script() const {
  const auto linear = [](const std::string& input, const std::string& layer) {
    return "torch.linear(" + input + ", " + layer + ".weight, " + layer + ".bias)";
  };
  const auto norm = [&](const std::string& layer) {
    return "torch.layer_norm(h, [" + std::to_string(shape_.width) + "], " + layer + ".weight, " + layer + ".bias)";
  };
  const auto head = [&](int part) {
    return "qkv[" + std::to_string(part) + "].reshape([n, t, " + std::to_string(shape_.heads) + ", " +
           std::to_string(shape_.width / shape_.heads) + "]).transpose(1, 2)";
  };
  std::string text =
      "\ndef forward(self, x):\n"
      "    n, t = x.size(0), x.size(1)\n"
      "    tokens = self.transformer.wte.weight\n"
      "    h = torch.embedding(tokens, x.long()) + self.transformer.wpe.weight[0:t]\n";
  for (std::int64_t i = 0; i < shape_.layers; ++i) {
    const std::string number = std::to_string(i);
    const std::string block = "b" + number;
    text.append("    ").append(block).append(" = getattr(self.transformer.h, \"").append(number).append("\")\n");
    text.append("    qkv = ").append(linear(norm(block + ".ln_1"), block + ".attn.c_attn"));
    text.append(".split(").append(std::to_string(shape_.width)).append(", 2)\n");
    text.append("    mixed = torch.scaled_dot_product_attention(");
    text.append(head(0)).append(", ").append(head(1)).append(", ").append(head(2));
    text.append(", is_causal=True).transpose(1, 2).reshape([n, t, ").append(std::to_string(shape_.width));
    text.append("])\n");
    text.append("    h = h + ").append(linear("mixed", block + ".attn.c_proj")).append("\n");
    text.append("    inner = torch.gelu(").append(linear(norm(block + ".ln_2"), block + ".mlp.c_fc"));
    text.append(", approximate=\"tanh\")\n");
    text.append("    h = h + ").append(linear("inner", block + ".mlp.c_proj")).append("\n");
  }
  return text + "    return torch.linear(" + norm("self.transformer.ln_f") + ", self.lm_head.weight)\n";
}

}  // namespace

std::unique_ptr<Model> make_gpt_model(const GptShape& shape) { return std::make_unique<Gpt>(shape); }

}  // namespace motley::torch_adapter
