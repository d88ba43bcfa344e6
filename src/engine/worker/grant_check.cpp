#include "engine/worker/grant_check.h"

#include <string>

#include "codec/codec.h"
#include "modes/work/pass.h"
#include "motley/task.h"
#include "wire/limits.h"

namespace motley::engine {
namespace {

Error misfit(std::string message) {
  return {ErrorCode::protocol, std::move(message), "update motley on both machines to the same version"};
}

// [first, first + count) lies in [0, size), without a sum that overflows.
bool within(std::uint64_t first, std::uint64_t count, std::uint64_t size) noexcept {
  return first <= size && count <= size - first;
}

Status check_local_steps(const wire::Grant& grant, const SampleCounts& samples) {
  const bool whole = !grant.from_end && (grant.limit == 0 || grant.limit == grant.count);
  if (static_cast<PassKind>(grant.pass >> 56) != PassKind::train || !whole)
    return misfit("local steps are those of a whole lease to train; found another");
  if (grant.local_steps == 0 || grant.local_steps > wire::kLocalStepsMax) {
    return misfit("a lease with spans has 1 to " + std::to_string(wire::kLocalStepsMax) + " local steps; found " +
                  std::to_string(grant.local_steps));
  }
  if (grant.ahead >= grant.local_steps) {
    return misfit("fewer than all " + std::to_string(grant.local_steps) + " local steps may begin ahead; found " +
                  std::to_string(grant.ahead));
  }
  if (grant.count / 2 > samples.train) {
    return misfit("a lease of local steps has at most twice the " + std::to_string(samples.train) +
                  " samples of the training set; found " + std::to_string(grant.count));
  }
  std::uint64_t left = grant.count;
  for (const StepRange& span : grant.spans) {
    if (span.count == 0 || span.count > left || !within(span.order_first, span.count, samples.train)) {
      return misfit("spans lie within " + std::to_string(samples.train) + " samples and a lease of " +
                    std::to_string(grant.count) + "; found " + std::to_string(span.count) + " from position " +
                    std::to_string(span.order_first) + " on");
    }
    left -= span.count;
  }
  if (!grant.spans.empty() && left > 0)
    return misfit("the spans of a lease are all of its positions; found " + std::to_string(left) + " without");
  return {};
}

}  // namespace

Status check_grant(const wire::Grant& grant, const SampleCounts& samples) {
  const auto kind = static_cast<PassKind>(grant.pass >> 56);
  if (kind < PassKind::train || kind > PassKind::probe)
    return misfit("a pass trains, evaluates, calibrates or probes; found kind " + std::to_string(grant.pass >> 56));
  if (grant.codec > static_cast<std::uint32_t>(codec::kLastCodec))
    return misfit("a codec is 0 to 3; found " + std::to_string(grant.codec));
  if (grant.lease == 0) return misfit("a lease has a number above 0; found 0");
  const std::uint64_t step = modes::PassId::unpack(grant.pass).number;
  if (kind == PassKind::train && step != grant.version) {
    return misfit("a lease to train is of the step of its version; found step " + std::to_string(step) +
                  " at version " + std::to_string(grant.version));
  }
  if (grant.local_steps > 0 || grant.ahead > 0 || !grant.spans.empty()) {
    const Status fits = check_local_steps(grant, samples);
    if (!fits || !grant.spans.empty()) return fits;
  }
  const std::uint64_t size = kind == PassKind::evaluate ? samples.test : samples.train;
  const std::uint64_t start = kind == PassKind::train ? grant.pass_first : 0;
  if (!within(start, grant.first, size) || !within(start + grant.first, grant.count, size)) {
    return misfit("a lease is of " + std::to_string(size) + " samples; found " + std::to_string(grant.count) +
                  " from position " + std::to_string(start) + " + " + std::to_string(grant.first) + " on");
  }
  return {};
}

}  // namespace motley::engine
