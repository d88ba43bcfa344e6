#pragma once
// Threads from outside: the arithmetic has none of its own.

#include <cstddef>
#include <functional>

namespace motley::ps {

class Parallel {
 public:
  virtual ~Parallel() = default;
  /// Calls work(0) to work(count - 1), each once, in any order and on any thread, and returns when all are done.
  /// `work` throws nothing.
  virtual void each(std::size_t count, const std::function<void(std::size_t)>& work) = 0;
};

}  // namespace motley::ps
