#pragma once
// Looks at the machine once a second on a thread of its own and tells when the worker is to pause or may go on.

#include <functional>
#include <memory>

#include "machine/machine_use.h"
#include "runtime/mailbox.h"
#include "runtime/worker/yield_rule.h"

namespace motley::runtime {

class UseWatch {
 public:
  /// `changed` is called with what is true now, where that is a pause, before this returns; later from the watch's
  /// thread.
  UseWatch(YieldOptions options, std::unique_ptr<machine::MachineUse> machine,
           std::function<void(PauseReason)> changed);

 private:
  void look();

  YieldRule rule_;
  std::unique_ptr<machine::MachineUse> machine_;
  std::function<void(PauseReason)> changed_;
  PauseReason last_ = PauseReason::none;
  Mailbox mailbox_;  // last: its thread ends first
};

}  // namespace motley::runtime
