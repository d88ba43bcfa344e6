// What each built-in recipe sets before the user's own keys.

#include "config/recipes.h"

namespace motley::config {
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

// The settings of nanoGPT for a text of about a megabyte.
void language_model(RunConfig& c) {
  c.steps = 2000;
  c.global_batch = 32;
  c.clip_norm = 1;
  c.optimizer_kind = "adamw";
  c.optimizer.lr = 1e-3;
  c.optimizer.beta2 = 0.99;
  c.optimizer.weight_decay = 0.1;
  // Shifts and scales have nothing to gain from decay.
  c.groups = {{"*.bias", {}, 0.0, {}}, {"*.ln_?.weight", {}, 0.0, {}}};
  c.schedule_kind = "cosine";
  c.warmup_steps = 100;
  c.min_factor = 0.1;
}

}  // namespace

std::vector<std::string> recipe_names() { return {"fashion-cnn", "mnist-cnn", "mlp", "softmax", "gpt-mini"}; }

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
  } else if (kind == "gpt-mini") {
    language_model(c);
  } else {
    return kind == "torchscript" || kind == kScriptKind;
  }
  return true;
}

}  // namespace motley::config
