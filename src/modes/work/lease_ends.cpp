#include "modes/work/lease_ends.h"

#include <algorithm>

namespace motley::modes {

void LeaseEnds::revoke(const Lease& lease, Reason reason) {
  work_.act_on(lease, lease.state == LeaseState::begun ? ActionKind::taken : ActionKind::cancel, reason);
}

void LeaseEnds::end(Lease& lease) {
  lease.state.enter(LeaseState::ended);
  work_.coverage.drop(lease.id);
  work_.act(ActionKind::abandon, {.code = ReasonCode::lost_lease, .worker = lease.worker}).lease = lease.id;
}

void LeaseEnds::take_back(SessionId session, Reason reason) {
  for (Lease& lease : work_.leases.all()) {
    if (lease.session != session || !lease.live()) continue;
    revoke(lease, reason);
    end(lease);
    work_.reissue = Reason{.code = ReasonCode::lost_lease, .worker = lease.worker};
  }
}

void LeaseEnds::cancel_covered(Time now) {
  for (Lease& lease : work_.leases.all()) {
    if (lease.state != LeaseState::granted || !work_.coverage.covered(lease.range)) continue;
    work_.act_on(lease, ActionKind::cancel, {.code = ReasonCode::covered_elsewhere, .worker = lease.worker});
    report_late(lease, now);
    end(lease);
  }
}

void LeaseEnds::end_open() {
  for (Lease& lease : work_.leases.all()) {
    if (!lease.live()) continue;
    revoke(lease, {.code = ReasonCode::covered_elsewhere});
    lease.state.enter(LeaseState::ended);
  }
  work_.reissue.reset();
}

void LeaseEnds::end_whole(Lease& lease, Time now) {
  lease.state.enter(LeaseState::ended);
  fleet::WorkerRecord& record = work_.run.roster.record(lease.worker);
  record.handed_back -= std::min(record.handed_back, 1U);
  work_.act_on(lease, ActionKind::taken, {.code = ReasonCode::all_covered, .worker = lease.worker});
  if (lease.first_of_pass) {
    Action& measured = work_.act(ActionKind::measured);
    measured.worker = lease.worker;
    measured.lease = lease.id;
    measured.range = lease.range;
    measured.elapsed = now - lease.granted;
  }
}

void LeaseEnds::report_late(const Lease& lease, Time now) {
  if (!work_.training() || !lease.due.passed || lease.due.unheard || !lease.first_of_pass) return;
  Action& late = work_.act(ActionKind::late);
  late.session = lease.session;
  late.worker = lease.worker;
  late.lease = lease.id;
  late.range = lease.range;
  late.number = lease.state == LeaseState::begun ? lease.range.count : lease.last.samples;
  late.elapsed = now - lease.granted;
}

void LeaseEnds::report_all_late(Time now) {
  for (const Lease& lease : work_.leases.all())
    if (lease.live()) report_late(lease, now);
}

}  // namespace motley::modes
