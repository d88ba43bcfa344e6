// compare DATA RUN: trains the example's network with Motley, and in a plain loop of libtorch with the same samples in
// the same order. Prints how far their weights are apart at most; they are the same within 1e-6.

#include <torch/optim/adam.h>

#include <iostream>

#include "fashion_model.h"
#include "motley/run.h"

int main(int count, char** words) {
  if (count != 3) return 2;
  constexpr std::int64_t kBatch = 64, kSteps = 4;
  const Arguments arguments{{},
                            {{"--data", words[1]}, {"--samples", "256"}, {"--epochs", "1"}, {"--batch-size", "64"}}};
  FashionModel model(arguments);
  const motley::RunOptions run{
      .settings = {"train.global_batch=64", "train.micro_batch=64", "train.shuffle=false", "train.epochs=1"},
      .directory = words[2],
      .listen = "127.0.0.1:0"};
  const motley::Result<motley::Trained> trained = motley::train(model, run);
  if (!trained || trained->steps != kSteps) {
    std::cerr << "compare: " << (trained ? "other steps than were asked for" : trained.error().message) << "\n";
    return 1;
  }

  torch::manual_seed(arguments.seed());
  Cnn net;
  torch::optim::Adam adam(net.parameters(), arguments.lr());
  const Images images = read_images(arguments, "train");
  const motley::Optimizer own = model.optimizer();
  for (std::int64_t step = 0; step < kSteps; ++step) {
    adam.param_groups()[0].options().set_lr(arguments.lr() * own.factors[std::size_t(step)]);
    adam.zero_grad();
    const auto batch = [step](const at::Tensor& all) { return all.narrow(0, step * kBatch, kBatch); };
    at::cross_entropy_loss(net.forward(batch(images.pixels)), batch(images.labels)).backward();
    adam.step();
  }

  double apart = 0;
  for (const motley::Placement& place : model.layout().placements()) {
    const at::Tensor plain = net.parameters()[place.entry].detach();
    for (std::size_t i = 0; i < place.elements; ++i)
      apart = std::max(apart, std::abs(double(plain.const_data_ptr<float>()[i]) - trained->weights[place.offset + i]));
  }
  std::cout << apart << "\n";
  return apart <= 1e-6 ? 0 : 1;
}
