#pragma once
// The parts of the extension module, and what they share.

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <condition_variable>
#include <exception>
#include <mutex>

#include "motley/bytes.h"
#include "motley/result.h"

namespace motley::cli {
class Output;
}

namespace motley::python {

namespace nb = nanobind;

/// Becomes motley.Error in Python.
struct Failure final : std::exception {
  explicit Failure(Error e) : error(std::move(e)) {}
  [[nodiscard]] const char* what() const noexcept override { return error.message.c_str(); }
  Error error;
};

/// The code that is called so; input for any other word, which a script may have made up.
ErrorCode code_of(std::string_view word);

/// What Python raised, where the core takes no exceptions: a motley.Error in its own words, of memory that ran out with
/// that code, anything else as `what` came to, with `code`. REQUIRES the GIL.
Error error_of(const std::exception& raised, const std::string& what, ErrorCode code = ErrorCode::input,
               const std::string& hint = {});

template <class T>
T value_or_raise(Result<T> result) {
  if (!result) throw Failure(std::move(result).error());
  return std::move(*result);
}
inline void raise_if(const Status& status) {
  if (!status) throw Failure(status.error());
}

/// A Python object that may be let go by any thread.
class Kept {
 public:
  explicit Kept(nb::object object) : object_(std::move(object)) {}
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
  ~Kept() {
    const nb::gil_scoped_acquire gil;
    object_.reset();
  }
  [[nodiscard]] const nb::object& get() const noexcept { return object_; }

 private:
  nb::object object_;
};

/// Waits, without the GIL, until `ready` holds under `mutex`. The main thread looks for signals meanwhile: Ctrl-C
/// becomes KeyboardInterrupt.
template <class Ready>
void wait_interruptibly(std::mutex& mutex, std::condition_variable& changed, Ready&& ready) {
  constexpr std::chrono::milliseconds kLookForSignals{50};
  for (;;) {
    {
      const nb::gil_scoped_release no_gil;
      std::unique_lock lock(mutex);
      if (changed.wait_for(lock, kLookForSignals, ready)) return;
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

/// Waits, without the GIL, until all that was said is written. Ctrl-C becomes KeyboardInterrupt, and what nobody reads
/// is given up.
void say_all(cli::Output& output);

/// All threads that are yet to come use the heap of the first one, see keep_freed_memory().
void share_one_heap();

/// Lets the process keep what CPU tensors have freed. Before the threads that compute are started.
void keep_freed_memory();

/// Ends the OpenMP threads that kernels of the calling thread have left waiting for its next ones. They cost the
/// threads that compute: with more of them than processors, libgomp's no longer spin between kernels but sleep.
void end_idle_openmp_threads();

void bind_errors(nb::module_& m);
void bind_memory(nb::module_& m);
void bind_layout(nb::module_& m);
void bind_task(nb::module_& m);
void bind_script(nb::module_& m);
void bind_program(nb::module_& m);
void bind_head(nb::module_& m);
void bind_worker(nb::module_& m);
void bind_files(nb::module_& m);

}  // namespace motley::python
