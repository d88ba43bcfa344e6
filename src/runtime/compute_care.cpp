// What is done for a device that must be taken care of (motley::Care): its passes have two sizes, which are tried
// before the first task; what it did wrong is computed again, and the third time it is out.

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "compute/pass_trial.h"
#include "machine/process_memory.h"
#include "machine/spare_memory.h"
#include "runtime/compute_thread.h"
#include "runtime/mailbox.h"

namespace motley::runtime {

// With the model's own state of the loss, which comes with the first order.
Status ComputeThread::try_passes(const LossState& state) {
  const Care care = prepared_.model->care();
  if (!care.any() || passes_tried_) return {};
  const std::uint64_t most = std::min<std::uint64_t>(prepared_.train_samples, most_);
  std::vector<std::uint64_t> indices(most);
  std::iota(indices.begin(), indices.end(), 0);
  Task like{.kind = PassKind::probe, .indices = indices, .seed = prepared_.seed, .state = state};
  const MemoryUse before = prepared_.model->memory(prepared_.reserve_bytes);
  const std::uint64_t budget = before.budget > prepared_.reserve_bytes ? before.budget - prepared_.reserve_bytes : 0;
  plan::MicroBatch memory(most_, before.used, budget);
  const compute::PassesWanted wanted{.care = care,
                                     .most = most_,
                                     .group = prepared_.group,
                                     .fits =
                                         [&](std::uint32_t ran, std::uint32_t next) {
                                           const MemoryUse use = prepared_.model->memory(prepared_.reserve_bytes);
                                           if (use.budget == 0) return true;
                                           memory.saw(ran, use.peak);
                                           return memory.fits(next);
                                         },
                                     .clock = [] { return seconds(now()); }};
  loop_->forget_weights();
  Result<compute::PassesTried> tried = compute::try_passes(*loop_, prepared_.model->layout(), like, wanted);
  for (std::optional<Fault> fault; !tried && (fault = loop_->take_fault());) {
    if (!computes_on(*fault)) return *out_;
    tried = compute::try_passes(*loop_, prepared_.model->layout(), like, wanted);
  }
  loop_->forget_weights();
  if (!tried) return tried.error();
  if (!tried->wrong.empty()) {
    out_ =
        Error{ErrorCode::refused, prepared_.model->capabilities().device + " computes wrong gradients: " + tried->wrong,
              "update the system and torch there, or let it compute on its processor: --device cpu"};
    return *out_;
  }
  passes_tried_ = true;
  set_passes(tried->sizes);
  return {};
}

void ComputeThread::set_passes(compute::PassSizes sizes) {
  micro_batch_ = most_ = sizes.full;
  odd_ = sizes.odd;
}

// Halves of the passes. False: they are as small as they can be.
bool ComputeThread::take_shorter_passes() {
  if (micro_batch_ / 2 < prepared_.group) return false;
  set_passes(compute::pass_sizes(micro_batch_ / 2, prepared_.group, prepared_.model->care().repeats));
  passes_tried_ = false;
  return true;
}

// False: it is out.
bool ComputeThread::computes_on(const Fault& fault) {
  const std::string device = prepared_.model->capabilities().device, why = compute::sentence_of(fault, device);
  const std::uint32_t before = micro_batch_;
  switch (care_.decide(fault, before / 2 >= prepared_.group)) {
    case compute::DeviceCare::Act::again:
      say(why + "; the samples are computed again");
      return true;
    case compute::DeviceCare::Act::again_in_smaller_passes:
      take_shorter_passes();
      say(why + "; its passes have " + std::to_string(micro_batch_) + " samples from now on, and had " +
          std::to_string(before));
      return true;
    case compute::DeviceCare::Act::out:
      out_ = Error{ErrorCode::refused, why + "; that was the third time, so it computes no more",
                   "update the system and torch there, or let it compute on its processor: --device cpu"};
      return false;
  }
  return false;
}

void ComputeThread::watch_pace(const Outcome& outcome, double took) {
  const Care care = prepared_.model->care();
  if (outcome.count < micro_batch_) return;
  const double pass = took / static_cast<double>(outcome.count) * micro_batch_;
  if (!care_.too_slow(pass, care.pass_seconds)) return;
  const std::uint32_t before = micro_batch_;
  if (take_shorter_passes())
    say("a pass of " + std::to_string(before) + " samples takes " + std::to_string(pass).substr(0, 4) + " s on " +
        prepared_.model->capabilities().device + ", where longer ones are given up while the screen is in use: " +
        std::to_string(micro_batch_) + " from now on");
}

// Between tasks, once a second.
void ComputeThread::watch_memory() {
  grown_asked_ = now();
  const std::uint64_t bytes = machine::process_memory().used;
  switch (growth_.decide(bytes)) {
    case compute::MemoryGrowth::Act::nothing:
      return;
    case compute::MemoryGrowth::Act::empty_caches:
      return prepared_.model->empty_caches();
    case compute::MemoryGrowth::Act::new_process:
      growth_ = {};
      if (events_.grown)
        events_.grown({ErrorCode::busy,
                       "the process that computes on " + prepared_.model->capabilities().device + " has taken " +
                           machine::mebibytes(bytes) +
                           ", much more than at its beginning, and emptying caches did not help",
                       "start it again"});
  }
}

void ComputeThread::say(const std::string& text) const {
  if (events_.note) events_.note(text);
}

// A task that failed, or was not begun.
void ComputeThread::failed(std::uint64_t task, const Error& error) {
  events_.failed(task, error);
  if (out_ && events_.out) events_.out(*out_);
}

}  // namespace motley::runtime
