#include "runtime/data_lanes.h"

#include <algorithm>
#include <limits>
#include <thread>
#include <utility>

#include "base/assert.h"
#include "runtime/lanes.h"
#include "wire/limits.h"

namespace motley::runtime {
namespace {

// What a core of a desktop carries in both directions at once (bench/wire_bench); plain TCP twice that.
constexpr std::size_t kMbitPerCoreTls = 4000;
constexpr std::size_t kMbitPerCorePlain = 8000;
constexpr std::size_t kConnectionsMax = 4;
static_assert(kConnectionsMax <= wire::kDataConnectionsMax);

// Frames between the first that is missing and the last that came.
constexpr std::size_t kHeldMax = 4096;

}  // namespace

std::size_t data_connections(const transport::Interface& interface, bool encrypted, unsigned cores) {
  const std::size_t per_core = encrypted ? kMbitPerCoreTls : kMbitPerCorePlain;
  const std::size_t wanted = (interface.mbit_per_s + per_core - 1) / per_core;
  return std::max<std::size_t>(1, std::min({wanted, kConnectionsMax, std::size_t{cores / 4}}));
}

std::size_t data_connections(const transport::PeerIdentity& peer) {
  return data_connections(transport::interface_towards(peer), peer.encrypted, std::thread::hardware_concurrency());
}

bool DataLanes::waits_for(std::size_t number, std::size_t count) const noexcept {
  if (number >= count || count > wire::kDataConnectionsMax) return false;
  return connections_.empty() || (connections_.size() == count && connections_[number] == nullptr);
}

void DataLanes::add(std::size_t number, std::shared_ptr<transport::Connection> connection) {
  MOTLEY_ASSERT(waits_for(number, count()));
  connections_[number] = std::move(connection);
  --missing_;
}

void DataLanes::send(wire::Frame frame, engine::Lane lane) {
  MOTLEY_ASSERT(complete());
  std::size_t chosen = 0;
  // What goes in the background is slowed down by each connection on its own, so it has one.
  if (count() > 1 && lane != engine::Lane::background) {
    if (lane == engine::Lane::weights) frame.header.order = wire::kOrdered | (sent_++ & ~wire::kOrdered);
    std::size_t least = std::numeric_limits<std::size_t>::max();
    ++turn_;
    for (std::size_t i = 0; i < count(); ++i) {
      const std::size_t candidate = (turn_ + i) % count();
      const std::size_t queued = connections_[candidate]->queued_bytes();
      if (queued >= least) continue;
      least = queued;
      chosen = candidate;
    }
  }
  connections_[chosen]->send(std::move(frame), priority_of(lane));
}

std::size_t DataLanes::queued_bytes() const {
  std::size_t bytes = 0;
  for (const auto& connection : connections_)
    if (connection != nullptr) bytes += connection->queued_bytes();
  return bytes;
}

std::uint64_t DataLanes::received_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& connection : connections_)
    if (connection != nullptr) bytes += connection->traffic().received_bytes;
  return bytes;
}

void DataLanes::close() {
  for (const auto& connection : connections_)
    if (connection != nullptr) connection->close();
}

bool LaneOrder::hold(wire::Frame frame) {
  const std::uint32_t ahead = (frame.header.order - next_) & ~wire::kOrdered;
  if (ahead >= kHeldMax) return false;
  if (held_.empty()) held_.resize(kHeldMax);
  std::optional<wire::Frame>& place = held_[frame.header.order % kHeldMax];
  if (place) return false;
  place = std::move(frame);
  return true;
}

std::optional<wire::Frame> LaneOrder::next() {
  if (held_.empty()) return std::nullopt;
  std::optional<wire::Frame> frame = std::exchange(held_[next_ % kHeldMax], std::nullopt);
  if (frame) ++next_;
  return frame;
}

}  // namespace motley::runtime
