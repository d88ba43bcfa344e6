// Random runs of the machine: workers join, begin all or a part of a lease, deliver chunks in any order, send NaN, are
// lost, yield, fall behind. Whatever happens, a chunk is summed once, from disjoint ranges that tile the pass, and
// their weights add up to the divisor.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "../../unit/cluster/fake_performance.h"
#include "cluster/coordinator_machine.h"

namespace motley::cluster {
namespace {

struct Driver {
  static constexpr std::uint32_t kChunks = 3;
  struct Task {
    Action grant;
    std::uint64_t count = 0;  // begun
    std::set<ChunkId> sent;
    std::uint64_t limit = 0, done = 0, trim = 0;

    explicit Task(const Action& action) : grant(action), limit(action.range.count) {}
    [[nodiscard]] Interval part(std::uint64_t samples) const {
      const Interval& all = grant.ceiling;
      return {all.first < grant.range.first ? all.end() - samples : all.first, samples};
    }
  };

  explicit Driver(const RunConfig& config) : machine(config, performance) {
    performance.shares = FakePerformance::Shares::uneven;
    performance.allowed = std::chrono::seconds(2);
    performance.grain = config.grain;
    happen(Started{});
  }

  void happen(const Event& event) {
    Actions made;
    machine.decide(event, now, made);
    for (const Action& action : made) perform(action);
    check_promises();
  }

  /// No position is promised to two workers whose leases move.
  void check_promises() {
    if (!machine.pass()) return;
    for (const Lease& a : machine.leases()) {
      for (const Lease& b : machine.leases()) {
        if (a.id >= b.id || !a.live() || !b.live() || a.due.passed || b.due.passed) continue;
        if (a.boundary.partner == b.id) RC_ASSERT(!a.range.overlaps(b.range));
      }
    }
  }

  void perform(const Action& action) {
    switch (action.kind) {
      case ActionKind::grant: {
        const Interval pass{0, machine.pass()->range.count};
        RC_ASSERT(action.range.count > 0 && action.range.within(pass));
        RC_ASSERT(action.range.within(action.ceiling) && action.ceiling.within(pass));
        tasks.insert_or_assign(action.lease, Task(action));
        ++open_grants[action.lease];
        break;
      }
      case ActionKind::trim: {
        const auto found = tasks.find(action.lease);
        if (found == tasks.end()) break;
        RC_ASSERT(action.number == found->second.trim + 1);
        found->second.trim = action.number;
        if (found->second.count > 0) break;  // it has begun: too late
        found->second.limit = std::max(action.range.count, found->second.done + 1);
        RC_ASSERT(found->second.limit <= found->second.grant.ceiling.count);
        break;
      }
      case ActionKind::taken:
      case ActionKind::cancel:
        tasks.erase(action.lease);
        RC_ASSERT(--open_grants[action.lease] == 0);  // each ends once
        break;
      case ActionKind::close_session:
        sessions.erase(action.session);
        std::erase_if(tasks, [&](const auto& entry) { return entry.second.grant.session == action.session; });
        break;
      case ActionKind::reduce:
      case ActionKind::finish_chunk:
        check_reduce(action.chunk);
        break;
      case ActionKind::close_step:
        RC_ASSERT(reduced.size() == kChunks);
        reduced.clear();
        ++steps;
        happen(PassFinished{});
        break;
      case ActionKind::close_evaluation:
        check_tiles(0);
        happen(PassFinished{});
        break;
      case ActionKind::diverged:
        diverged = true;
        break;
      default:
        break;
    }
  }

  void check_tiles(ChunkId chunk) {
    std::uint64_t next = 0;
    double weight = 0;
    for (const auto& piece : machine.coverage().pieces(chunk)) {
      RC_ASSERT(piece.range.first == next);
      next = piece.range.end();
      weight += machine.coverage().find(piece.lease)->weight;
    }
    RC_ASSERT(next == machine.pass()->range.count);
    RC_ASSERT(weight == machine.coverage().weight());
    RC_ASSERT(weight == static_cast<double>(machine.pass()->range.count));
  }

  void check_reduce(ChunkId chunk) {
    RC_ASSERT(reduced.insert(chunk).second);  // once
    check_tiles(chunk);
  }

  void join() {
    if (sessions.size() >= 4) return;
    const SessionId session = ++last_session;
    happen(SessionOpened{session, false});
    happen(WorkerReady{session, session});
    sessions.insert(session);
    happen(WorkerSynced{session, machine.version()});
  }

  template <class T>
  static typename T::key_type pick(const T& from, unsigned number, auto key) {
    auto it = from.begin();
    std::advance(it, number % from.size());
    return key(*it);
  }

  void begin(LeaseId id, unsigned how) {
    Task& task = tasks.at(id);
    if (task.count > 0) return;
    const std::uint64_t all = task.limit;
    task.count = how % 3 == 0 ? std::max(1 + how % all, task.done) : all;
    happen(LeaseBegun{task.grant.session, id, task.part(task.count), static_cast<double>(task.count), 1});
  }

  /// Some samples more are through, or the newest Trim is answered.
  void report(LeaseId id, unsigned how) {
    Task& task = tasks.at(id);
    if (task.count > 0) return;
    const bool answers = how % 2 == 0 && task.trim > 0;
    if (!answers && task.done + 1 < task.limit) ++task.done;
    happen(LeaseProgress{task.grant.session, id, task.done, answers ? task.limit : 0, answers ? task.trim : 0});
  }

  void deliver(LeaseId id, unsigned how, bool finite) {
    Task& task = tasks.at(id);
    const ChunkId chunk = how % kChunks;
    if (!task.sent.insert(chunk).second) return;
    happen(ChunkArrived{task.grant.session, id, chunk, {finite ? 1 : std::numeric_limits<double>::infinity(), 0}});
  }

  void finish(LeaseId id, unsigned how) {
    const Task task = tasks.at(id);
    const bool evaluates = machine.pass()->id.kind == PassKind::evaluate;
    const std::uint64_t count = how % 4 == 0 ? 0 : evaluates ? 1 + how % task.grant.range.count : 0;
    if (!evaluates && (count > 0 || task.count > 0 || how % 4 != 0)) return;
    if (count == 0) {
      // What it gave back it does not compute any more.
      for (ChunkId chunk = 0; chunk < kChunks; ++chunk) tasks.at(id).sent.insert(chunk);
    }
    happen(LeaseFinished{task.grant.session, id, count, static_cast<double>(count), 0, 0});
  }

  void step(unsigned what, unsigned which, unsigned how) {
    now += std::chrono::milliseconds(20);
    const auto lease_of = [](const auto& entry) { return entry.first; };
    const auto same = [](const auto& entry) { return entry; };
    if (what < 2 || sessions.empty()) return join();
    if (what == 2 && how % 2 == 0) return happen(SessionEnded{pick(sessions, which, same), how % 3 == 0});
    if (what == 3 && how % 4 == 0) return happen(WorkerYields{pick(sessions, which, same)});
    if (what == 4) {
      now += std::chrono::milliseconds(how % 900);
      for (const SessionId session : sessions)
        if (how % 5 != 0 || session % 2 == 0) machine.heard(session, now);
      return happen(Ticked{});
    }
    if (tasks.empty()) return;
    const LeaseId id = pick(tasks, which, lease_of);
    if (what == 5 && how % 8 == 0) return deliver(id, how / 8, false);
    if (what == 5 && how % 8 == 1) return happen(LeaseFailed{tasks.at(id).grant.session, id});
    if (what <= 6) return finish(id, how);
    if (what <= 9) return begin(id, how);
    if (what <= 12) return report(id, how);
    deliver(id, how, true);
  }

  /// With honest workers alone the run comes to its end.
  void settle() {
    for (int round = 0; round < 3000 && !machine.finished(); ++round) {
      while (sessions.size() < 2 && !machine.finished()) join();
      now += std::chrono::milliseconds(100);
      for (const SessionId session : sessions) machine.heard(session, now);
      happen(Ticked{});
      if (tasks.empty() || machine.finished()) continue;
      const LeaseId id = tasks.begin()->first;
      if (machine.pass()->id.kind == PassKind::evaluate) {
        const Task task = tasks.at(id);
        happen(LeaseFinished{task.grant.session, id, task.grant.range.count,
                             static_cast<double>(task.grant.range.count), 0, 0});
        continue;
      }
      begin(id, 1);
      for (ChunkId chunk = 0; chunk < kChunks && tasks.count(id) > 0; ++chunk) deliver(id, chunk, true);
      if (tasks.count(id) == 0 || tasks.at(id).sent.size() < kChunks) continue;
      // Gave it back before, or it was refused: a real worker would have told so.
      const Task task = tasks.at(id);
      if (machine.lease(id) == nullptr || !machine.lease(id)->live()) tasks.erase(id);
    }
  }

  FakePerformance performance;
  CoordinatorMachine machine;
  Time now = std::chrono::seconds(1);
  std::map<LeaseId, Task> tasks;
  std::map<LeaseId, int> open_grants;
  std::set<SessionId> sessions;
  std::set<ChunkId> reduced;
  SessionId last_session = 0;
  std::uint64_t steps = 0;
  bool diverged = false;
};

using Move = std::pair<unsigned, std::pair<unsigned, unsigned>>;

RC_GTEST_PROP(CoordinatorProperty, WhateverHappensTheSumsAreRight,
              (bool early, bool clips, bool grained, bool shifts, const std::vector<Move>& moves)) {
  RunConfig config;
  config.steps = 4;
  config.train_samples = 50;
  config.test_samples = 9;
  config.global_batch = 20;
  config.chunks = Driver::kChunks;
  if (clips) config.whole_until = early ? config.first_version + 1 : ~std::uint64_t{0};
  config.grain = grained ? 4 : 1;
  Driver driver(config);
  driver.performance.moves = shifts;
  driver.join();
  driver.join();
  for (const auto& [what, detail] : moves) {
    for (unsigned repeat = 0; repeat < 4 && !driver.machine.finished(); ++repeat)
      driver.step((what + repeat * 5) % 17, detail.first + repeat, detail.second + 3 * repeat);
  }
  driver.settle();
  RC_ASSERT(driver.machine.finished());
  RC_ASSERT(driver.diverged || driver.steps == config.steps);
}

}  // namespace
}  // namespace motley::cluster
