#include "sim/round_replay.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/assert.h"
#include "data/order.h"
#include "ps/outer_rate.h"
#include "sim/plain_sum.h"
#include "sim/reference.h"

namespace motley::sim {
namespace {

std::vector<StepRange> spans_of(const wire::Grant& grant) {
  if (!grant.spans.empty()) return grant.spans;
  return {{grant.epoch, grant.pass_first + grant.first, grant.count}};
}

using Vector = std::vector<SharedBytes>;  // by chunk

template <class Of>
Vector each_of(const Vector& some, const Vector& others, Of of) {
  Vector all;
  for (ChunkId chunk = 0; chunk < some.size(); ++chunk) {
    const std::span<const float> a = some[chunk].floats(), b = others[chunk].floats();
    std::vector<float> made(a.size());
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = of(a[i], b[i]);
    all.push_back(SharedBytes::copy_of(std::as_bytes(std::span(made))));
  }
  return all;
}

Vector sum_of(const Vector& a, const Vector& b) {
  return each_of(a, b, [](float x, float y) { return x + y; });
}

Vector difference_of(const Vector& a, const Vector& b) {
  return each_of(a, b, [](float x, float y) { return x - y; });
}

Vector scaled(const Vector& a, float factor) {
  return each_of(a, a, [factor](float x, float) { return factor * x; });
}

// How many workers contributed to it.
std::size_t contributors_to(const engine::StepClosed& step) {
  std::set<std::string> names;
  for (const engine::CommittedRange& range : step.ranges) names.insert(range.worker);
  for (const engine::CommittedLate& late : step.late) names.insert(late.range.worker);
  return names.size();
}

}  // namespace

RoundReplay::RoundReplay(const RunSetup& run, const Data& data)
    : run_(run), model_(model_of(run, data)), loop_(*model_), rounds_(run.train_samples, run.global_batch) {
  Result<ps::Server> made = first_server(run, *model_);
  MOTLEY_ASSERT(made.ok());
  outer_.emplace(std::move(*made));
  versions_[0] = outer_->snapshot();
}

void RoundReplay::head_started(std::uint64_t version) {
  grants_.clear();
  made_.clear();
  if (!versions_.contains(version)) return;  // the checks say so
  Result<ps::Server> made = make_server(run_, model_->layout(), versions_[version]);
  MOTLEY_ASSERT(made.ok());
  outer_.emplace(std::move(*made));
}

void RoundReplay::granted(std::uint64_t session, const wire::Grant& grant) {
  if (grant.local_steps > 0) grants_.push_back({session, grant});
}

void RoundReplay::begun(const wire::Begin& begin) {
  for (Granted& one : grants_)
    if (one.grant.lease == begin.lease) one.ahead = begin.ahead;
}

RoundReplay::Used RoundReplay::positions_of(const engine::StepClosed& step) const {
  Used used;
  const auto add = [&](std::uint64_t of, const engine::CommittedRange& range) {
    const StepRange at = rounds_.range(of);
    for (std::uint64_t i = 0; i < range.count; ++i) used[{at.epoch, at.order_first + range.first + i}] = false;
  };
  for (const engine::CommittedLate& late : step.late) add(late.step, late.range);
  for (const engine::CommittedRange& range : step.ranges) add(step.step, range);
  return used;
}

// Of several grants of a position only the last can have counted: the others ended before.
std::string RoundReplay::find(const engine::StepClosed& step, std::vector<Contribution>& found) const {
  Used used = positions_of(step);
  for (auto granted = grants_.rbegin(); granted != grants_.rend(); ++granted) {
    const wire::Grant* grant = &granted->grant;
    if (grant->version != step.step) continue;
    std::size_t counted = 0;
    for (const StepRange& span : spans_of(*grant)) {
      for (std::uint64_t i = 0; i < span.count; ++i) {
        const auto position = used.find({span.epoch, span.order_first + i});
        if (position != used.end() && !std::exchange(position->second, true)) ++counted;
      }
    }
    if (counted == 0) continue;
    if (counted != grant->count)
      return "lease " + std::to_string(grant->lease) + " counted in part: " + std::to_string(counted) + " of " +
             std::to_string(grant->count) + " positions";
    found.push_back({.granted = *granted});
  }
  if (std::ranges::any_of(used, [](const auto& entry) { return !entry.second; }))
    return "nobody was granted what counted";
  std::ranges::sort(found, {}, [](const Contribution& one) { return one.granted.grant.first; });
  return {};
}

void RoundReplay::compute(Contribution& contribution) {
  const auto& [session, grant, ahead] = contribution.granted;
  std::vector<SharedBytes> base;
  for (ChunkId chunk = 0; chunk < model_->layout().chunks().size(); ++chunk) base.push_back(outer_->weights(chunk));
  const std::uint64_t per_epoch = (run_.train_samples + run_.local_batch - 1) / run_.local_batch;
  const std::uint64_t first = grant.epoch * per_epoch + grant.pass_first / run_.local_batch;
  const auto before = ahead > 0 ? made_.find(session) : made_.end();
  const std::vector<SharedBytes> from = before != made_.end() ? before->second : base;
  Result<ps::Server> made = ps::Server::make(model_->layout(), run_.optimizer, run_.schedule, run_.clip_norm,
                                             {.version = first, .weights = from, .optimizer = {}});
  MOTLEY_ASSERT(made.ok());
  const std::vector<std::uint64_t> samples = data::samples_at(spans_of(grant), run_.seed, run_.train_samples, true);
  std::uint64_t done = 0;
  bool waits = ahead > 0;
  for (std::uint64_t k = 1; k <= grant.local_steps; ++k) {
    const std::uint64_t end = grant.count * k / grant.local_steps;
    if (end == done) continue;
    if (waits && k > ahead) {
      waits = false;
      const Status moved = made->rebase(made->version(), sum_of(base, difference_of(weights_of(*made), from)), false);
      MOTLEY_ASSERT(moved.ok());
    }
    contribution.weight += make_step(*made, std::span(samples).subspan(done, end - done));
    done = end;
  }
  contribution.made = weights_of(*made);
  const std::vector<SharedBytes> change = difference_of(base, contribution.made);
  contribution.change = scaled(change, static_cast<float>(contribution.weight));
}

double RoundReplay::make_step(ps::Server& server, std::span<const std::uint64_t> samples) {
  const Result<PlainSum> all = plain_sum(loop_, run_.seed, server.version(), samples, weights_of(server));
  MOTLEY_ASSERT(all.ok());
  for (ChunkId chunk = 0; chunk < all->gradients.size(); ++chunk) {
    const std::span<const float> sum(all->gradients[chunk]);
    server.reduce(chunk, {&sum, 1}, all->weight, samples.size());
  }
  MOTLEY_ASSERT(server.close_gradient().ok());
  for (ChunkId chunk = 0; chunk < all->gradients.size(); ++chunk) server.apply(chunk);
  server.finish_step();
  return all->weight;
}

std::string RoundReplay::closed(const engine::StepClosed& step, const std::vector<SharedBytes>& weights) {
  std::vector<Contribution> contributions;
  if (std::string wrong = find(step, contributions); !wrong.empty()) return wrong;
  std::erase_if(grants_, [&](const Granted& one) { return one.grant.version <= step.step; });
  double weight = 0;
  for (Contribution& one : contributions) {
    compute(one);
    weight += one.weight;
  }
  made_.clear();
  for (Contribution& one : contributions) made_[one.granted.session] = std::move(one.made);
  if (run_.rate_by_workers) outer_->follow(step.step, ps::outer_rate(contributors_to(step)));
  std::vector<SharedBytes> after;
  for (ChunkId chunk = 0; chunk < weights.size(); ++chunk) {
    std::vector<std::span<const float>> parts;
    parts.reserve(contributions.size());
    for (const Contribution& one : contributions) parts.push_back(one.change[chunk].floats());
    outer_->reduce(chunk, parts, weight, step.samples);
    after.push_back(outer_->apply(chunk));
  }
  outer_->finish_step();
  versions_[outer_->version()] = outer_->snapshot();
  const Distance off = distance(weights, after);
  if (off.same_bits) return {};
  return "its weights differ from those of the same round done again by " + std::to_string(off.relative);
}

}  // namespace motley::sim
