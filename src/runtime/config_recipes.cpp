// What each built-in recipe sets before the user's own keys.

#include "runtime/config_recipes.h"

namespace motley::runtime {
namespace {

void image_classifier(RunConfig& c, const char* data, double mean, double std) {
  c.data_uri = data;
  c.data_test_uri = data;
  c.data_mean = mean;
  c.data_std = std;
  c.epochs = 3;
  c.optimizer_kind = "adam";
  c.optimizer.lr = 2e-3;
  c.schedule_kind = "cosine";
}

}  // namespace

std::vector<std::string> recipe_names() { return {"fashion-cnn", "mnist-cnn", "mlp", "softmax"}; }

bool apply_recipe(const std::string& kind, RunConfig& c) {
  c.model_kind = kind;
  if (kind == "fashion-cnn" || kind == "mlp") {
    image_classifier(c, "fashion-mnist", 0.2860, 0.3530);
  } else if (kind == "mnist-cnn") {
    image_classifier(c, "mnist", 0.1307, 0.3081);
  } else if (kind == "softmax") {
    c.data_uri = "synthetic:4096:32:10";
    c.data_test_uri = "synthetic:1024:32:10";
    c.optimizer.lr = 0.1;
  } else {
    return kind == "torchscript";
  }
  return true;
}

}  // namespace motley::runtime
