#include "blocks/serving.h"

#include <algorithm>
#include <string>

#include "wire/limits.h"

namespace motley::blocks {

Status Serving::ask(const wire::Want& want) {
  const std::size_t bytes = want.sha256.size();
  if (want.offer == 0 ? bytes != sizeof(Hash) : bytes != 0) {
    return Error{ErrorCode::protocol,
                 "expected the number of an offer or a hash of " + std::to_string(sizeof(Hash)) + " bytes, found " +
                     std::to_string(want.offer) + " and " + std::to_string(bytes) + " bytes",
                 "install the same version of motley on both machines"};
  }
  Wanted wanted{want.offer, {}};
  std::ranges::copy(want.sha256, wanted.hash.begin());
  if (open() >= wire::kWantsMax) {
    return Error{ErrorCode::protocol,
                 "expected at most " + std::to_string(wire::kWantsMax) + " open wishes, found more",
                 "install the same version of motley on both machines"};
  }
  open_.push_back(wanted);
  return {};
}

std::optional<Wanted> Serving::next() {
  if (open_.empty()) return std::nullopt;
  const Wanted first = open_.front();
  open_.pop_front();
  return first;
}

}  // namespace motley::blocks
