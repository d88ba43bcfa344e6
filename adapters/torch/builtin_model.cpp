// The built-in kinds: the usual two-convolution CNN and a multi-layer perceptron, with torch's default initialisation.
#include <numeric>
#include <sstream>

#include "torch/generators.h"
#include "torch/model.h"
#include "torch/save_script.h"

namespace motley::torch_adapter {
namespace {

// The forward pass is written twice, here for speed and as TorchScript for export; a test compares the two.
class BuiltinModel : public Model {
 public:
  void train(bool) override {}
  void to(const at::Device& device) override {
    for (NamedTensor& named : tensors_) named.tensor.set_data(named.tensor.to(device));
  }
  const std::vector<NamedTensor>& tensors() const override { return tensors_; }
  bool draws_random_numbers() const override { return false; }
  bool mixes_samples() const override { return false; }

  Status save(const std::filesystem::path& path) override {
    save_script(tensors_, class_name(), script(), path);
    return {};
  }

 protected:
  /// Takes the parameters of an initialised torch module as layer `name`.
  template <class Holder>
  void add_layer(const std::string& name, Holder layer) {
    tensors_.push_back({name + ".weight", layer->weight, false, ""});
    tensors_.push_back({name + ".bias", layer->bias, false, ""});
  }
  const at::Tensor& tensor(std::size_t i) const { return tensors_[i].tensor; }
  std::size_t layers() const { return tensors_.size() / 2; }
  virtual std::string class_name() const = 0;
  virtual std::string script() const = 0;

 private:
  std::vector<NamedTensor> tensors_;
};

class Cnn : public BuiltinModel {
 public:
  Cnn() {
    add_layer("conv1", torch::nn::Conv2d(1, 32, 3));
    add_layer("conv2", torch::nn::Conv2d(32, 64, 3));
    add_layer("fc1", torch::nn::Linear(1600, 128));
    add_layer("fc2", torch::nn::Linear(128, 10));
  }
  at::Tensor forward(const at::Tensor& x) override {
    // Pooling before the ReLU gives the same values and gradients, bit for bit, for a quarter of the work. A processor
    // convolves and pools faster where channels lie last. Of one channel both orders are the same bytes, so strides
    // have to say which it is.
    at::Tensor h = x.contiguous().view({x.size(0), 1, 28, 28});
    if (x.is_cpu()) h = h.as_strided(h.sizes(), {784, 1, 28, 1});
    h = at::max_pool2d(at::conv2d(h, tensor(0), tensor(1)), 2).relu_();
    h = at::max_pool2d(at::conv2d(h, tensor(2), tensor(3)), 2).relu_();
    h = at::linear(h.flatten(1), tensor(4), tensor(5)).relu_();
    return at::linear(h, tensor(6), tensor(7));
  }

 protected:
  std::string class_name() const override { return "Cnn"; }
  std::string script() const override {
    return R"(
def forward(self, x):
    h = torch.reshape(x, [-1, 1, 28, 28])
    h = torch.max_pool2d(torch.relu(torch.conv2d(h, self.conv1.weight, self.conv1.bias)), [2, 2])
    h = torch.max_pool2d(torch.relu(torch.conv2d(h, self.conv2.weight, self.conv2.bias)), [2, 2])
    h = torch.relu(torch.linear(torch.flatten(h, 1), self.fc1.weight, self.fc1.bias))
    return torch.linear(h, self.fc2.weight, self.fc2.bias)
)";
  }
};

class Mlp : public BuiltinModel {
 public:
  Mlp(std::int64_t inputs, const std::vector<std::int64_t>& hidden, std::int64_t outputs) {
    std::vector<std::int64_t> sizes = hidden;
    sizes.push_back(outputs);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      add_layer("fc" + std::to_string(i + 1), torch::nn::Linear(i == 0 ? inputs : sizes[i - 1], sizes[i]));
    }
  }
  at::Tensor forward(const at::Tensor& x) override {
    at::Tensor h = x.flatten(1);
    for (std::size_t i = 0; i < layers(); ++i) {
      h = at::linear(h, tensor(2 * i), tensor(2 * i + 1));
      if (i + 1 < layers()) h.relu_();
    }
    return h;
  }

 protected:
  std::string class_name() const override { return "Mlp"; }
  std::string script() const override {
    std::ostringstream out;
    out << "\ndef forward(self, x):\n    h = torch.flatten(x, 1)\n";
    for (std::size_t i = 1; i <= layers(); ++i) {
      const std::string layer = "self.fc" + std::to_string(i);
      const std::string linear = "torch.linear(h, " + layer + ".weight, " + layer + ".bias)";
      out << "    h = " << (i < layers() ? "torch.relu(" + linear + ")" : linear) << "\n";
    }
    out << "    return h\n";
    return out.str();
  }
};

}  // namespace

Result<std::unique_ptr<Model>> make_model(const ModelSpec& spec) {
  if (spec.kind == "torchscript") return load_script_model(spec);
  if (Status fits = builtin::check_sizes(spec); !fits) return fits.error();
  const Seeded seeded(at::kCPU, spec.seed);
  if (spec.kind == "gpt-mini") return make_gpt_model(spec.gpt);
  if (spec.kind != "mlp") return std::unique_ptr<Model>(std::make_unique<Cnn>());
  const auto elements =
      std::accumulate(spec.sample_shape.begin(), spec.sample_shape.end(), std::int64_t{1}, std::multiplies<>());
  return std::unique_ptr<Model>(std::make_unique<Mlp>(elements, spec.hidden, static_cast<std::int64_t>(spec.outputs)));
}

}  // namespace motley::torch_adapter
