#include "engine/worker_following.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "wire/limits.h"

namespace motley::engine {
namespace {

constexpr std::size_t kVersionsKept = 3;
constexpr std::size_t kPlacesMax = 1U << 17;
// What others bring must come at this part of what the coordinator's own link was seen to carry, within these bounds.
constexpr double kPartOfLink = 0.125, kSlowest = 64 << 10, kFastest = 4 << 20, kUnknown = 1 << 20;
// A segment is whole before it is handed on: with each hop it may come later by so many times what that takes.
constexpr double kHopFactor = 2, kHopSecondsMax = 2;
constexpr Duration kSlept = std::chrono::milliseconds(500);  // between two looks: what came meanwhile is still unread

std::size_t kept_bytes(const wire::Frame& frame) noexcept { return sizeof frame + frame.body.size(); }

}  // namespace

void Following::reset(std::size_t chunks) {
  chunks_ = chunks;
  source_ = newest_ = forgotten_ = settled_ = oldest_ = 0;
  places_.clear();
  drop_early();
  hand_on_.clear();
  by_hash_.clear();
  link_ = {};
  arrival_ = {};
  wrong_ = false;
}

void Following::drop_early() {
  early_.clear();
  early_bytes_ = 0;
}

void Following::begin(std::uint64_t id, Time now, std::uint32_t hops) {
  source_ = newest_ = id;
  hops_ = hops;
  wait_ = {.since = now, .newest = now};
  wrong_ = false;
  drop_early();
}

const Following::Place* Following::awaited() const noexcept {
  const auto found = std::ranges::find_if(places_, [](const Place& place) { return !place.frame; });
  return found == places_.end() ? nullptr : &*found;
}

wire::Unfollows Following::give_up(bool wrong) {
  wire::Unfollows end{.id = std::exchange(source_, 0), .version = 0, .has = {}, .wrong = wrong};
  drop_early();
  if (by_hash_.empty()) return end;
  const Place* first = awaited();
  end.version = first != nullptr ? first->header.version : by_hash_.rbegin()->first;
  end.has.resize((chunks_ + 7) / 8);
  std::vector<std::size_t> covered(chunks_);
  if (const auto version = by_hash_.find(end.version); version != by_hash_.end()) {
    for (const auto& [segment, length] : version->second) {
      const ChunkId chunk = segment.first;
      covered[chunk] += wire::kHandedOnBytesMax;
      if (covered[chunk] >= length)
        end.has[chunk / 8] = static_cast<std::uint8_t>(end.has[chunk / 8] | 1U << chunk % 8);
    }
  }
  for (const Place& place : places_) {
    const ChunkId chunk = place.header.chunk;
    if (!place.frame && place.header.version == end.version)
      end.has[chunk / 8] = static_cast<std::uint8_t>(end.has[chunk / 8] & ~(1U << chunk % 8));
  }
  return end;
}

wire::Unfollows Following::forget() {
  forgotten_ = newest_;
  const wire::Unfollows end{.id = std::exchange(source_, 0)};
  places_.clear();
  hand_on_.clear();
  drop_early();
  by_hash_.clear();
  return end;
}

void Following::settled(std::uint64_t id, std::uint64_t oldest) {
  settled_ = id;
  oldest_ = oldest;
}

bool Following::lacks() const noexcept {
  const Place* first = settled_ == 0 ? nullptr : awaited();
  return first != nullptr && first->header.pass <= settled_ && first->header.version < oldest_;
}

double Following::least_bytes_per_second() const noexcept {
  const std::optional<double> link = link_.bytes_per_second();
  return link ? std::clamp(kPartOfLink * *link, kSlowest, kFastest) : kUnknown;
}

Duration Following::hop() const noexcept {
  const double hop = kHopFactor * wire::kHandedOnBytesMax / link_.bytes_per_second().value_or(kUnknown);
  return Duration(static_cast<Duration::rep>(1e9 * std::min(hop, kHopSecondsMax)));
}

Duration Following::patience() const noexcept { return kPatience + hops_ * hop(); }

bool Following::overdue(Time now) {
  if (now - looked_ > kSlept) {
    wait_.since = std::min(now, wait_.since + (now - looked_));
    wait_.newest = std::max(wait_.newest, now);
  }
  looked_ = now;
  if (source_ == 0 || (awaited() == nullptr && !wrong_)) return false;
  const double slow = static_cast<double>(wait_.bytes + wire::kBodyBytesMax) / least_bytes_per_second();
  return wrong_ || now - wait_.newest > patience() || seconds(now - wait_.since - patience()) > slow;
}

void Following::measure(const wire::Frame& frame, Time now) {
  if (frame.header.version != arrival_.version) {
    link_.record({arrival_.bytes, seconds(arrival_.last - arrival_.first)});
    arrival_ = {.version = frame.header.version, .bytes = 0, .first = now, .last = now};
  }
  arrival_.bytes += frame.body.size();
  arrival_.last = now;
}

Status Following::add(const wire::Frame& frame, Time now) {
  const wire::FrameHeader& header = frame.header;
  if (places_.size() >= kPlacesMax)
    return Error{ErrorCode::protocol, "too many weights wait for one that does not come",
                 "update motley on both machines to the same version"};
  if ((header.flags & wire::kByHash) == 0) {
    if (by_hash_.empty()) measure(frame, now);
    const auto place =
        std::ranges::find_if(places_, [&](const Place& each) { return !each.frame && is_of(each.header, header); });
    Place& to =
        place != places_.end() ? *place : places_.emplace_back(Place{.header = header, .hash = {}, .frame = {}});
    put(to, header, frame.body);
    return {};
  }
  if (!hasher_ || frame.body.size() != wire::kHashBytes || header.chunk >= chunks_)
    return Error{ErrorCode::protocol, "the head sent an invalid hash of weights",
                 "update motley on both machines to the same version"};
  if (header.pass <= forgotten_) return {};
  const bool old = by_hash_.size() == kVersionsKept && header.version < by_hash_.begin()->first;
  if (old || !by_hash_[header.version].try_emplace({header.chunk, header.offset}, header.total).second)
    return {};  // it came twice
  while (by_hash_.size() > kVersionsKept) by_hash_.erase(by_hash_.begin());
  if (awaited() == nullptr) wait_ = {.since = now, .newest = now};
  Place& place = places_.emplace_back(Place{.header = header, .hash = {}, .frame = {}});
  std::ranges::transform(frame.body.bytes(), place.hash.begin(),
                         [](std::byte byte) { return std::to_integer<std::uint8_t>(byte); });
  fill_early(place, now);
  return {};
}

void Following::fill_early(Place& place, Time now) {
  const auto early =
      std::ranges::find_if(early_, [&](const wire::Frame& each) { return is_of(each.header, place.header); });
  if (early == early_.end()) return;
  const wire::Frame frame = std::move(*early);
  early_bytes_ -= kept_bytes(frame);
  early_.erase(early);
  wrong_ = !fill(place, frame, now) || wrong_;
}

bool Following::fill(Place& place, const wire::Frame& frame, Time now) {
  if (hasher_(frame.body.bytes()) != place.hash) return false;
  put(place, place.header, frame.body);
  wait_.newest = now;
  wait_.bytes += frame.body.size();
  return true;
}

void Following::put(Place& place, const wire::FrameHeader& header, SharedBytes body) {
  const bool hand_on = ((place.header.flags | header.flags) & wire::kHandOn) != 0;
  wire::Frame frame{header, std::move(body)};
  if ((header.flags & wire::kByHash) != 0) frame.header.length = static_cast<std::uint32_t>(frame.body.size());
  frame.header.flags = 0;
  frame.header.pass = 0;
  if (hand_on) hand_on_.push_back(frame);
  place.frame = std::move(frame);
}

bool Following::add_from_source(const wire::Frame& frame, Time now) {
  const auto place =
      std::ranges::find_if(places_, [&](const Place& each) { return !each.frame && is_of(each.header, frame.header); });
  if (place != places_.end()) return fill(*place, frame, now);
  early_bytes_ += kept_bytes(frame);
  early_.push_back(frame);
  while (early_bytes_ > kEarlyBytesMax || early_.size() > kEarlyFramesMax) {
    early_bytes_ -= kept_bytes(early_.front());
    early_.pop_front();
  }
  return true;
}

std::optional<wire::Frame> Following::next() {
  if (places_.empty() || !places_.front().frame) return std::nullopt;
  std::optional<wire::Frame> frame = std::move(places_.front().frame);
  places_.pop_front();
  return frame;
}

std::optional<wire::Frame> Following::next_to_hand_on() {
  if (hand_on_.empty()) return std::nullopt;
  wire::Frame frame = std::move(hand_on_.front());
  hand_on_.pop_front();
  return frame;
}

}  // namespace motley::engine
