#pragma once
// Errors as values. Every fallible function of the core returns Result<T>; exceptions stay at the edges.
// An Error says what was expected or found (`message`) and what to try (`hint`).

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace motley {

enum class ErrorCode : std::uint8_t {
  usage,  // wrong flags or keys
  input,  // a file, token or value from the user that cannot be used
  io,     // the operating system refused to read or write
  disk_full,
  network,   // an address that does not answer, a link that broke
  busy,      // port in use, run directory in use
  refused,   // the other side said no
  protocol,  // bytes from the other side that make no sense
  mismatch,  // another model, data set or protocol version
  memory,    // a device is out of memory
  diverged,  // the loss is not finite
  interrupted,
  internal,
};

/// The word used in JSON error events, e.g. "disk-full".
std::string_view to_word(ErrorCode code) noexcept;

/// Process exit status for an error: 2 wrong usage or input, 130 interrupted, else 1.
int exit_status(ErrorCode code) noexcept;

struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;  // what was expected, what was found
  std::string hint;     // what to try; may be empty
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }

  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)), failed_(true) {}  // NOLINT(google-explicit-constructor)
  [[nodiscard]] bool ok() const noexcept { return !failed_; }
  explicit operator bool() const noexcept { return ok(); }
  const Error& error() const& { return error_; }
  Error&& error() && { return std::move(error_); }

 private:
  Error error_;
  bool failed_ = false;
};

using Status = Result<void>;

}  // namespace motley
