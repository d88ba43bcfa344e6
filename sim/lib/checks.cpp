#include "sim/checks.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/xxh64.h"
#include "modes/work/pass.h"

namespace motley::sim {
namespace {

std::string text(std::uint64_t number) { return std::to_string(number); }

std::uint64_t hash_of(const std::vector<SharedBytes>& chunks) {
  std::uint64_t hash = 0;
  for (const SharedBytes& chunk : chunks) hash = xxh64(chunk.bytes(), hash);
  return hash;
}

}  // namespace

Checks::Checks(const Scenario& scenario, const Reference& reference, const Data& data)
    : scenario_(scenario), reference_(reference), batches_(scenario.run.train_samples, scenario.run.global_batch) {
  if (scenario.replays_rounds()) replay_.emplace(scenario.run, data);
}

void Checks::fail(std::string what) {
  if (failures_.size() < kFailuresMax) failures_.push_back(std::move(what));
}

std::size_t Checks::coarseness() const {
  const auto of = [](std::optional<wire::CodecId> codec) {
    return static_cast<std::size_t>(codec.value_or(wire::CodecId::int4));
  };
  return std::max(of(scenario_.codecs.gradients), of(scenario_.codecs.weights));
}

void Checks::head_started(std::uint32_t incarnation, std::uint64_t version, const std::vector<SharedBytes>& weights) {
  states_[incarnation] = states_[incarnation_];
  states_[incarnation].erase(states_[incarnation].upper_bound(version), states_[incarnation].end());
  if (incarnation <= incarnation_) fail("incarnation " + text(incarnation) + " after " + text(incarnation_));
  if (version > version_) fail("the head came up at version " + text(version) + ", beyond what was closed");
  const std::uint64_t hash = hash_of(weights);
  const auto before = versions_.find({incarnation_, version});
  if (before != versions_.end() && before->second.weights != hash)
    fail("the head came up at version " + text(version) + " with other weights than that had");
  if (replay_) replay_->head_started(version);
  incarnation_ = incarnation;
  version_ = version;
  paused_ = false;
  taken_.clear();
  ledger_.erase(ledger_.lower_bound(version), ledger_.end());
  versions_[{incarnation, version}] = {hash, hash};
}

void Checks::check_ranges(std::uint64_t step, const std::vector<engine::CommittedRange>& ranges, std::uint64_t count) {
  std::uint64_t next = 0;
  for (const engine::CommittedRange& range : ranges) {
    if (range.count == 0 || range.first != next) {
      fail("step " + text(step) + ": a committed range starts at " + text(range.first) + " with " + text(range.count) +
           " positions; expected " + text(next));
    }
    next = range.first + range.count;
  }
  if (next != count) {
    fail("step " + text(step) + ": the committed ranges end at " + text(next) + "; the pass has " + text(count));
  }
}

// What of it was used before, the epochs tell.
void Checks::check_round(const engine::StepClosed& step, const std::vector<SharedBytes>& weights) {
  const std::string name = "round " + text(step.step);
  std::uint64_t counted = 0;
  for (const engine::WorkerStep& worker : step.workers) measured_.overlapped += worker.overlapped;
  for (const engine::CommittedRange& range : step.ranges) counted += range.count;
  for (const engine::CommittedLate& late : step.late) {
    counted += late.range.count;
    if (late.step >= step.step) fail(name + " has late positions of round " + text(late.step));
  }
  if (step.samples != counted || step.weight != static_cast<double>(counted) || counted == 0)
    fail(name + ": " + text(step.samples) + " samples of weight " + std::to_string(step.weight) + ", and ranges of " +
         text(counted));
  if (!replay_) return;
  if (const std::string wrong = replay_->closed(step, weights); !wrong.empty()) fail(name + ": " + wrong);
}

void Checks::check_all_used() {
  std::map<std::uint64_t, std::uint64_t> used;
  for (const auto& [step, commit] : ledger_) {
    for (const engine::CommittedRange& range : commit.ranges) used[step] += range.count;
    for (const engine::CommittedLate& late : commit.late) used[late.step] += late.range.count;
  }
  for (std::uint64_t step = 0; step < scenario_.run.steps; ++step) {
    if (used[step] != batches_.range(step).count)
      fail("of the " + text(batches_.range(step).count) + " samples of round " + text(step) + " " + text(used[step]) +
           " were used");
  }
}

void Checks::step_closed(std::uint32_t incarnation, const engine::StepClosed& step,
                         const std::vector<SharedBytes>& weights, const std::vector<SharedBytes>& held, Time now,
                         Time healed_at) {
  const std::string name = "step " + text(step.step);
  if (incarnation != incarnation_ || step.step != version_) {
    fail(name + " of incarnation " + text(incarnation) + " closed; expected step " + text(version_) +
         " of incarnation " + text(incarnation_));
    return;
  }
  if (paused_) fail(name + " closed while the run was held");
  const StepRange pass = batches_.range(step.step);
  if (scenario_.run.local_steps > 0) {
    check_round(step, weights);
    last_closed_ = now;
    version_ = step.step + 1;
    ledger_[step.step] = {step.weight, step.loss_sum, step.ranges, step.late};
    versions_[{incarnation, version_}] = {hash_of(weights), hash_of(held)};
    return;
  }
  if (step.samples != pass.count || step.epoch != pass.epoch)
    fail(name + ": other samples or epoch than the order says");
  check_ranges(step.step, step.ranges, pass.count);
  if (step.weight != static_cast<double>(pass.count)) {
    fail(name + ": the gradient was divided by " + std::to_string(step.weight) + ", expected " + text(pass.count));
  }
  if (step.step < reference_.steps.size() && !scenario_.poisoned()) {
    const Reference::Step& expected = reference_.steps[step.step];
    const double loss = step.loss_sum / step.weight;
    const double wanted = expected.loss_sum / expected.weight;
    const double error = std::abs(loss - wanted) / std::max(wanted, kLossMin);
    measured_.loss_error = std::max(measured_.loss_error, error);
    if (!(error <= tolerance())) {
      fail(name + ": loss " + std::to_string(loss) + ", one machine has " + std::to_string(wanted) + ", off by " +
           std::to_string(error));
    }
    if (scenario_.undisturbed_single() && step.loss_sum != expected.loss_sum) fail(name + ": the loss has other bits");
  }
  // Time with something broken, and what it takes to notice that it is whole again, is not the engine's.
  const Duration took = now - std::max({last_closed_, healed_at, now - step.duration});
  measured_.slowest_step_s = std::max(measured_.slowest_step_s, seconds(took));
  // Leases of a faulty worker are overdue before anything is known of it.
  if (took > (scenario_.faulty() ? 2 * kStepMax : kStepMax))
    fail(name + " took " + std::to_string(seconds(took)) + " s with nothing broken");
  last_closed_ = now;
  version_ = step.step + 1;
  ledger_[step.step] = {step.weight, step.loss_sum, step.ranges, {}};
  versions_[{incarnation, version_}] = {hash_of(weights), hash_of(held)};
}

void Checks::evaluated(const engine::Evaluated& evaluation) {
  if (evaluation.samples != scenario_.run.test_samples) {
    fail("the evaluation of version " + text(evaluation.version) + " covered " + text(evaluation.samples) + " of " +
         text(scenario_.run.test_samples) + " samples");
  }
  // A parked worker may still evaluate an earlier one while the others train.
  if (evaluation.version > version_) fail("an evaluation of a version that is not there yet");
}

void Checks::state_changed(std::uint64_t version, const LossState& state) {
  states_[incarnation_][version] = {state.number, xxh64(state.bytes.bytes())};
}

// An evaluation comes before what is said at its eval point; a calibration counts for its time alone.
void Checks::check_state(std::uint32_t incarnation, const engine::TaskOrder& order) {
  if (order.kind == PassKind::calibrate) return;
  const State found{order.state.number, order.state.number == 0 ? 0 : xxh64(order.state.bytes.bytes())};
  const auto& states = states_[incarnation];
  const auto at = [&](auto after) { return after == states.begin() ? State{} : std::prev(after)->second; };
  const bool right = found == at(states.upper_bound(order.version)) ||
                     (order.kind == PassKind::evaluate && found == at(states.lower_bound(order.version)));
  if (!right)
    fail("a task computed at version " + text(order.version) + " with state " + text(found.number) + " of the loss");
}

void Checks::task_computes(std::uint32_t incarnation, const engine::TaskOrder& order) {
  check_state(incarnation, order);
  const auto found = versions_.find({incarnation, order.version});
  if (found == versions_.end()) {
    fail("a task computed at version " + text(order.version) + ", which incarnation " + text(incarnation) +
         " never had");
  } else if (found->second.held != hash_of(order.weights)) {
    fail("a task computed at version " + text(order.version) + " with weights of another version among them");
  }
}

void Checks::worker_said(const wire::Frame& frame) {
  if (!replay_) return;
  const Result<wire::Message> message = wire::decode(frame.body.bytes());
  if (!message) return;
  if (const auto* begin = std::get_if<wire::Begin>(&*message)) replay_->begun(*begin);
}

void Checks::head_said(std::uint64_t session, const wire::Message& message) {
  if (const auto* grant = std::get_if<wire::Grant>(&message)) {
    if (replay_) replay_->granted(session, *grant);
    if (paused_ && static_cast<PassKind>(grant->pass >> 56) != PassKind::calibrate)
      fail("lease " + text(grant->lease) + " was granted while the run was held");
    const Lease lease{grant->pass, grant->limit > 0 ? grant->limit : grant->count, grant->count};
    if (!leases_.emplace(std::pair(session, grant->lease), lease).second) {
      fail("lease " + text(grant->lease) + " was granted twice");
    }
    if (grant->count == 0) fail("lease " + text(grant->lease) + " is empty");
  } else if (const auto* trim = std::get_if<wire::Trim>(&message)) {
    const auto found = leases_.find({session, trim->lease});
    if (found == leases_.end() || found->second.ended || trim->count == 0 || trim->count > found->second.ceiling) {
      fail("lease " + text(trim->lease) + " was trimmed to " + text(trim->count) + ", which it cannot be");
      return;
    }
    ++(trim->count > found->second.limit ? measured_.raises : measured_.trims);
    found->second.limit = trim->count;
  } else if (const auto* taken = std::get_if<wire::Taken>(&message)) {
    if (leases_.contains({session, taken->lease}) || !said_before(session, *taken)) lease_ended(session, taken->lease);
    taken_[taken->lease] = taken->discarded;
  } else if (const auto* cancel = std::get_if<wire::Cancel>(&message)) {
    lease_ended(session, cancel->lease);
  } else if (const auto* closed = std::get_if<wire::PassClosed>(&message)) {
    for (auto it = leases_.lower_bound({session, 0}); it != leases_.end() && it->first.first == session; ++it) {
      if (it->second.pass == closed->pass && !it->second.ended) {
        fail("the pass of lease " + text(it->first.second) + " of session " + text(session) +
             " closed before the lease had an end, at version " + text(version_));
      }
    }
  }
}

// Who comes back hears the newest Taken again, of an earlier session, which may not have heard it.
bool Checks::said_before(std::uint64_t session, const wire::Taken& taken) {
  const auto found = taken_.find(taken.lease);
  if (found != taken_.end() && found->second != taken.discarded)
    fail("lease " + text(taken.lease) + " counts otherwise than was said before");
  return std::ranges::any_of(
      leases_, [&](const auto& entry) { return entry.first.first < session && entry.first.second == taken.lease; });
}

// Every Grant ends in exactly one of Taken and Cancel, or with its session.
void Checks::lease_ended(std::uint64_t session, std::uint64_t lease) {
  const auto found = leases_.find({session, lease});
  if (found == leases_.end()) {
    fail("lease " + text(lease) + " ended before it was granted");
  } else if (std::exchange(found->second.ended, true)) {
    fail("lease " + text(lease) + " ended twice");
  }
}

void Checks::check_epochs() {
  std::map<std::uint64_t, std::vector<unsigned>> epochs;
  const auto use = [&](std::uint64_t step, const engine::CommittedRange& range) {
    const StepRange pass = batches_.range(step);
    auto& used = epochs[pass.epoch];
    used.resize(scenario_.run.train_samples);
    for (std::uint64_t p = range.first; p < range.first + range.count; ++p)
      if (pass.order_first + p < used.size()) ++used[pass.order_first + p];
  };
  for (const auto& [step, commit] : ledger_) {
    for (const engine::CommittedRange& range : commit.ranges) use(step, range);
    for (const engine::CommittedLate& late : commit.late) use(late.step, late.range);
  }
  for (const auto& [epoch, used] : epochs) {
    const bool whole = batches_.first_step(epoch + 1) <= scenario_.run.steps;
    for (std::size_t position = 0; position < used.size(); ++position) {
      if (used[position] > 1 || (whole && used[position] == 0)) {
        fail("epoch " + text(epoch) + ": position " + text(position) + " was committed " + text(used[position]) +
             " times");
        break;
      }
    }
  }
}

bool Checks::eval_point(std::uint64_t version) const {
  if (version >= scenario_.run.steps) return true;
  if (scenario_.run.evaluate_every > 0) return version % scenario_.run.evaluate_every == 0;
  return batches_.range(version).order_first == 0;
}

void Checks::paused(std::uint64_t version, bool step) {
  if (version != version_) fail("the run is held at version " + text(version) + ", and stands at " + text(version_));
  if (paused_) fail("the run is held twice at version " + text(version));
  if (!step && !eval_point(version)) fail("the run is held at version " + text(version) + ", which is no mark");
  paused_ = true;
  (step ? paused_steps_ : paused_eval_points_).insert(version);
}

// Of a step whose pause the head did not live to see nobody knows any more.
void Checks::check_holds() {
  const bool killed = incarnation_ > 1;
  for (std::uint64_t version = 1; version <= scenario_.run.steps && scenario_.pauses != modes::Pauses::never;
       ++version) {
    if (eval_point(version) && !paused_eval_points_.contains(version))
      fail("the run was not held at mark " + text(version));
    if (scenario_.pauses == modes::Pauses::steps && !killed && !paused_steps_.contains(version))
      fail("the run was not held after step " + text(version));
  }
}

void Checks::check_courses(const std::vector<SharedBytes>& weights) {
  const double cosine_min = kCosinesMin[coarseness()], off_max = kLengthsMax[coarseness()];
  for (const Course& course : courses(reference_, weights)) {
    if (course.cosine >= cosine_min && std::abs(course.length - 1) <= off_max) continue;
    fail("from its beginning " + course.tensor + " went " + std::to_string(course.length) +
         " times as far as on one machine; cosine of the angle between the two: " + std::to_string(course.cosine));
  }
}

void Checks::finished(std::uint64_t version, const std::vector<SharedBytes>& weights) {
  if (version != scenario_.run.steps) {
    fail("the run ended at version " + text(version) + " of " + text(scenario_.run.steps));
    return;
  }
  if (ledger_.size() != scenario_.run.steps) fail("the ledger holds " + text(ledger_.size()) + " steps");
  check_epochs();
  check_holds();
  if (scenario_.poisoned()) return;
  if (scenario_.run.local_steps > 0) return check_all_used();
  const Distance off = distance(weights, reference_.weights);
  measured_.weights_error = off.relative;
  if (!(off.relative <= tolerance())) {
    fail("the final weights differ from one machine's by " + std::to_string(off.relative) + " of their norm");
  }
  check_courses(weights);
  if (scenario_.undisturbed_single() && !off.same_bits) fail("the final weights have other bits than one machine's");
}

}  // namespace motley::sim
