#pragma once
// What libraries say on this process's standard error: drivers of some GPUs tell of work that they gave up nowhere
// else. Everything goes on to where it went before. One at a time in a process; nothing to hear on Windows. Any thread.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace motley::machine {

class ErrorWords {
 public:
  /// `wanted`: whether a line is of interest; on a thread of its own.
  explicit ErrorWords(std::function<bool(std::string_view line)> wanted);
  ~ErrorWords();
  ErrorWords(const ErrorWords&) = delete;
  ErrorWords& operator=(const ErrorWords&) = delete;

  /// The lines of interest, one after the other, among those that were said since this was called last: the beginning
  /// of them. Waits until all that was said has been read.
  [[nodiscard]] std::optional<std::string> take();

 private:
  class Pipe;
  std::unique_ptr<Pipe> pipe_;  // null: there is nothing to hear
};

}  // namespace motley::machine
