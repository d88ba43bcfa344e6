#include "sim/faults.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <variant>

#include "wire/messages.h"

namespace motley::sim {
namespace {

// What is usual is known from what others sent before.
constexpr std::uint64_t kSoundLeases = 16;

}  // namespace

std::string_view to_word(Fault fault) noexcept {
  constexpr std::array<std::string_view, kFaults + 3> kWords{"none",      "not finite", "other weight", "hands back",
                                                             "odd times", "silent",     "stale",        "wild",
                                                             "wrong",     "negated",    "outdated"};
  return kWords[static_cast<std::size_t>(fault)];
}

FaultyMouth::Start FaultyMouth::start() {
  constexpr std::array<std::pair<Fault, Start>, 6> kStarts{{{Fault::not_finite, Start::not_finite},
                                                            {Fault::hands_back, Start::handed_back},
                                                            {Fault::wild, Start::wild},
                                                            {Fault::wrong, Start::wrong},
                                                            {Fault::negated, Start::negated},
                                                            {Fault::outdated, Start::outdated}}};
  ++leases_;
  const auto found = std::ranges::find(kStarts, fault_, &std::pair<Fault, Start>::first);
  if (found == kStarts.end() || (fault_ == Fault::wild && leases_ <= kSoundLeases) ||
      (fault_ >= Fault::negated && !lies_by_now()) || !strikes())
    return Start::sound;
  lies_ += found->second == Start::not_finite || found->second == Start::handed_back ? 1 : 0;
  return found->second;
}

bool FaultyMouth::renamed(wire::Frame& frame) const {
  frame.header.subject = newest_;
  frame = wire::seal(frame.header, frame.body);
  return true;
}

bool FaultyMouth::changes(wire::Frame& frame) {
  if (frame.header.type == wire::FrameType::gradient || frame.header.type == wire::FrameType::statistic)
    return stale_.contains(frame.header.subject) ? renamed(frame) : !mute_.contains(frame.header.subject);
  if (frame.header.type != wire::FrameType::control) return true;
  Result<wire::Message> message = wire::decode(frame.body.bytes());
  if (!message) return true;
  if (auto* begin = std::get_if<wire::Begin>(&*message);
      begin != nullptr && (fault_ == Fault::other_weight || fault_ == Fault::silent) && strikes()) {
    mute_.insert(begin->lease);
    if (fault_ == Fault::other_weight) {
      ++lies_;
      begin->weight *= 3;
    }
    frame = wire::seal(frame.header, wire::encode(*begin));
  } else if (begin != nullptr && fault_ == Fault::stale) {
    if (newest_ == 0 || !strikes()) {
      newest_ = begin->lease;
      return true;
    }
    stale_.insert(begin->lease);
    begin->lease = newest_;
    frame = wire::seal(frame.header, wire::encode(*begin));
  } else if (auto* finish = std::get_if<wire::Finish>(&*message); finish != nullptr) {
    if (mute_.contains(finish->lease)) return false;
    if (stale_.contains(finish->lease)) {
      finish->lease = newest_;
      frame = wire::seal(frame.header, wire::encode(*finish));
    }
    if (fault_ != Fault::odd_times || !strikes()) return true;
    constexpr std::array<double, 4> kTimes{0, -1, 1e308, std::numeric_limits<double>::quiet_NaN()};
    finish->compute_seconds = kTimes[random_.below(kTimes.size())];
    finish->wait_seconds = kTimes[random_.below(kTimes.size())];
    frame = wire::seal(frame.header, wire::encode(*finish));
  }
  return true;
}

}  // namespace motley::sim
