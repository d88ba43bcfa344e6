#include "cluster/coordinator_machine.h"

#include <algorithm>
#include <variant>

#include "base/assert.h"

namespace motley::cluster {

CoordinatorMachine::CoordinatorMachine(const MachineConfig& config, Pace& pace)
    : config_(config),
      batches_(config.train_samples, config.global_batch, config.batch_changes),
      pace_(pace),
      version_(config.first_version) {
  MOTLEY_ASSERT(config.grain > 0 && config.chunks > 0);
  MOTLEY_ASSERT(steps() <= PassId::kNumberMax);
}

void CoordinatorMachine::decide(const Event& event, Time now, Actions& actions) {
  actions_ = &actions;
  std::visit([&](const auto& concrete) { on(concrete, now); }, event);
  if (started_ && !finished_) {
    if (stretch_) cut_if_due();
    if (!pass_ && !stretch_) open_next(now);
    if (stopping_ && pass_) stop_if_idle();
    if (reissue_wanted_ && pass_) reissue(now);
    if (balance_wanted_ && pass_) balance(now);
  }
  actions_ = nullptr;
}

void CoordinatorMachine::change_batch(std::uint64_t batch, double rate) {
  MOTLEY_ASSERT(training() && applied_ == config_.chunks);
  batches_.change({version_ + 1, batch, rate});
}

void CoordinatorMachine::heard(SessionId session, Time now) {
  if (Member* member = members_.find(session)) member->heard = std::max(member->heard, now);
}

const Lease* CoordinatorMachine::lease(LeaseId id) const noexcept {
  for (const Lease& lease : leases_.all())
    if (lease.id == id) return &lease;
  return nullptr;
}

std::uint64_t CoordinatorMachine::members_wanted() const noexcept {
  const std::uint64_t wanted = opened_any_ ? 1 : std::max<std::uint64_t>(config_.min_workers, 1);
  const std::uint64_t here = members_.count(MemberState::member) + members_.count(MemberState::parked);
  return here >= wanted ? 0 : wanted - here;
}

Action& CoordinatorMachine::act(ActionKind kind, Reason reason) {
  MOTLEY_ASSERT(actions_ != nullptr);
  return actions_->emplace_back(Action{.kind = kind, .worker = reason.worker, .reason = reason});
}

}  // namespace motley::cluster
