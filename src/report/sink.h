#pragma once
// Whom a run tells what happens. From one thread at a time: before the run from the one that starts it, then from the
// coordinator's. A sink returns quickly and never fails.

#include <memory>
#include <vector>

#include "report/event.h"

namespace motley::report {

class Sink {
 public:
  virtual ~Sink() = default;
  virtual void take(const Event& event) = 0;
};

/// Several, in order.
class Tee final : public Sink {
 public:
  explicit Tee(std::vector<std::shared_ptr<Sink>> sinks) : sinks_(std::move(sinks)) {}
  void take(const Event& event) override {
    for (const auto& sink : sinks_) sink->take(event);
  }

 private:
  std::vector<std::shared_ptr<Sink>> sinks_;
};

}  // namespace motley::report
