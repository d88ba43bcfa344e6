#pragma once
// A worker of the coordinator's own process, beside their channel: what goes this way are handles to memory, which no
// frame carries. What it orders goes through engine::Worker, as any other work. Any thread.

#include <cstdint>
#include <functional>
#include <memory>

#include "engine/local/delegated_steps.h"
#include "motley/device_server.h"

namespace motley::engine {

/// Called on the thread of the worker's engine.
struct DelegationEvents {
  /// `taken` is to be called once the step is taken over: so many at the most are under way. Any thread.
  std::function<void(DelegatedStep step, std::function<void()> taken)> step;
  std::function<void(DelegationEnd end)> ended;
};

class LocalWorker {
 public:
  virtual ~LocalWorker() = default;
  /// Steps to make without asking, once what it has in hand is done; those that were delegated before are given up.
  /// False: it cannot.
  virtual bool delegate(DelegatedSteps order, DelegationEvents events) = 0;
  /// It is to end after the step it is at.
  virtual void cut(std::uint64_t number) = 0;
  /// Of its device; null: it has none.
  [[nodiscard]] virtual std::shared_ptr<DeviceServer> device_server() { return nullptr; }
  /// Calls `idle` once, on any thread, when nothing is computed and nothing waits to be. False: nothing is, for good.
  virtual bool when_idle(std::function<void()> idle) = 0;
};

}  // namespace motley::engine
