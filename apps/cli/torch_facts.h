#pragma once
// What `motley devices`, `doctor` and `env` tell of the user's torch. Scripts, which compute models, ask it themselves.

#include <string>
#include <utility>
#include <vector>

#include "runtime/model_provider.h"

namespace motley::cli {

/// Owned by the thread of the commands. Each question may take the seconds of an import the first time.
class TorchFacts {
 public:
  virtual ~TorchFacts() = default;
  /// "torch 2.13.0+cpu of this Python"; empty where there is no torch.
  [[nodiscard]] virtual std::string version() = 0;
  /// What a report of a fault should say of it, by name: ("torch", "2.13.0+cpu"), ("cuda", "13.0"), …; empty where
  /// there is none.
  [[nodiscard]] virtual std::vector<std::pair<std::string, std::string>> facts() = 0;
  /// How to come by a torch, where there is none.
  [[nodiscard]] virtual std::string how_to_get() const = 0;
  /// Those of torch, accelerators first; without torch the processor.
  [[nodiscard]] virtual std::vector<runtime::Device> devices() = 0;
};

}  // namespace motley::cli
