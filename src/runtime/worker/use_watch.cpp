#include "runtime/worker/use_watch.h"

namespace motley::runtime {

UseWatch::UseWatch(YieldOptions options, std::unique_ptr<machine::MachineUse> machine,
                   std::function<void(PauseReason)> changed)
    : rule_(options), machine_(std::move(machine)), changed_(std::move(changed)) {
  look();
  mailbox_.start("motley-use", [this] { look(); }, std::chrono::seconds(1));
}

void UseWatch::look() {
  const PauseReason reason = rule_.decide(machine_->read(), now());
  if (reason == last_) return;
  last_ = reason;
  changed_(reason);
}

}  // namespace motley::runtime
