#pragma once
// Bytes that may be anything as text for a terminal. One thread at a time.

#include <string>

namespace motley::cli {

/// Passes UTF-8 on as it becomes complete. Other bytes, and control characters that could steer a terminal, become
/// U+FFFD.
class Readable {
 public:
  std::string add(char byte);
  /// What is left of a character that was never completed.
  std::string finish();

 private:
  [[nodiscard]] std::string take();
  std::string pending_;
};

}  // namespace motley::cli
