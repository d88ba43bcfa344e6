#include "engine/grant_check.h"

#include <string>

#include "codec/codec.h"
#include "motley/task.h"

namespace motley::engine {
namespace {

Error misfit(std::string message) {
  return {ErrorCode::protocol, std::move(message), "update motley on both machines to the same version"};
}

// [first, first + count) lies in [0, size), without a sum that overflows.
bool within(std::uint64_t first, std::uint64_t count, std::uint64_t size) noexcept {
  return first <= size && count <= size - first;
}

}  // namespace

Status check_grant(const wire::Grant& grant, const SampleCounts& samples) {
  const auto kind = static_cast<PassKind>(grant.pass >> 56);
  if (kind < PassKind::train || kind > PassKind::probe)
    return misfit("a pass trains, evaluates, calibrates or probes; found kind " + std::to_string(grant.pass >> 56));
  if (grant.codec > static_cast<std::uint32_t>(codec::CodecId::int4))
    return misfit("a codec is 0 to 3; found " + std::to_string(grant.codec));
  if (grant.lease == 0) return misfit("a lease has a number above 0; found 0");
  const std::uint64_t size = kind == PassKind::evaluate ? samples.test : samples.train;
  const std::uint64_t start = kind == PassKind::train ? grant.pass_first : 0;
  if (!within(start, grant.first, size) || !within(start + grant.first, grant.count, size)) {
    return misfit("a lease is of " + std::to_string(size) + " samples; found " + std::to_string(grant.count) +
                  " from position " + std::to_string(start) + " + " + std::to_string(grant.first) + " on");
  }
  return {};
}

}  // namespace motley::engine
