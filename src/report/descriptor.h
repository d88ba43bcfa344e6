#pragma once
// What sinks write to, as the system has it. Internal to report/. Any thread.

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

namespace motley::report {

/// What one write puts into a pipe in one piece.
extern const std::size_t kPieceBytes;

/// Whether something can be written within `patience_ms`.
bool ready(int descriptor, int patience_ms);
/// Whether so many bytes can be written without waiting for a reader. Terminals, sockets: nobody knows.
bool takes_at_once(int descriptor, std::size_t bytes);
/// What is left of it: less than before, or all where it has to be tried again; nothing where nobody reads any more.
std::optional<std::string_view> write_some(int descriptor, std::string_view text);
/// Of a terminal.
std::optional<std::size_t> columns_of(int descriptor);

/// Signals are for other threads, as long as one lives: also for threads that are started meanwhile.
class SignalsBlocked {
 public:
  SignalsBlocked();
  ~SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  struct Before;
  std::unique_ptr<Before> before_;
};

}  // namespace motley::report
