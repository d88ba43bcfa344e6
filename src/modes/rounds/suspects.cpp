#include "modes/rounds/suspects.h"

#include <algorithm>
#include <utility>

namespace motley::modes {

using fleet::WorkerId;

namespace {

bool overlap(std::span<const Owed> some, std::span<const Owed> others) {
  return std::ranges::any_of(some, [&](const Owed& a) {
    return std::ranges::any_of(others, [&](const Owed& b) {
      return a.step == b.step && a.first < b.first + b.count && b.first < a.first + a.count;
    });
  });
}

}  // namespace

void Suspects::add(WorkerId worker, Why why, RoundSpans parts, bool decides) {
  if (suspects_.size() == kSuspectsMax) suspects_.erase(suspects_.begin());
  suspects_.push_back({worker, why, std::move(parts), decides});
}

bool Suspects::believe(WorkerId worker, Why why, std::span<const Owed> parts) {
  if (std::ranges::all_of(of(why, parts), [worker](WorkerId each) { return each == worker; })) return false;
  std::erase_if(suspects_, [&](const Suspect& each) { return each.why == why && overlap(each.parts, parts); });
  return true;
}

std::vector<WorkerId> Suspects::of(Why why, std::span<const Owed> parts) const {
  std::vector<WorkerId> found;
  for (const Suspect& each : suspects_)
    if (each.why == why && overlap(each.parts, parts) && std::ranges::find(found, each.worker) == found.end())
      found.push_back(each.worker);
  return found;
}

std::vector<WorkerId> Suspects::counted(WorkerId by, std::span<const Owed> parts) {
  std::vector<WorkerId> wrong;
  for (const Suspect& each : suspects_)
    if (each.worker != by && each.decides && overlap(each.parts, parts)) wrong.push_back(each.worker);
  std::erase_if(suspects_, [&](const Suspect& each) { return overlap(each.parts, parts); });
  return wrong;
}

bool Suspects::has(WorkerId worker) const noexcept {
  return std::ranges::find(suspects_, worker, &Suspect::worker) != suspects_.end();
}

}  // namespace motley::modes
