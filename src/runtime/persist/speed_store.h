#pragma once
// What earlier runs learned of this machine's devices, so that the next run starts with the right shares. A small file
// of the user that may be deleted at any time.

#include <filesystem>
#include <optional>
#include <string>

#include "plan/time_model.h"

namespace motley::runtime {

class SpeedStore {
 public:
  /// An empty path keeps nothing.
  explicit SpeedStore(std::filesystem::path file) : file_(std::move(file)) {}

  /// Empty if the key is not known, or the file is missing or damaged.
  [[nodiscard]] std::optional<plan::Affine> find(const std::string& key) const;
  /// Replaces the file; an error is not worth telling: the speed is measured again.
  void keep(const std::string& key, const plan::Affine& speed) const;

 private:
  std::filesystem::path file_;
};

}  // namespace motley::runtime
