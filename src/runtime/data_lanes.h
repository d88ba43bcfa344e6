#pragma once
// The data connections of a session, used as one. One is enough where one core carries all that the link does: a second
// pays on 5 Gbit/s and more.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/link.h"
#include "transport/connection.h"
#include "transport/interface.h"
#include "wire/frame.h"

namespace motley::runtime {

/// So many, on as many I/O threads, for a link that begins at `interface`. At most a quarter of `cores`, at least 1.
[[nodiscard]] std::size_t data_connections(const transport::Interface& interface, bool encrypted, unsigned cores);
/// For the link between this machine and `peer`, as far as this machine can tell.
[[nodiscard]] std::size_t data_connections(const transport::PeerIdentity& peer);

/// The sending side. A frame goes where the least is queued; weights that must stay in order are numbered for it.
class DataLanes {
 public:
  DataLanes() = default;
  explicit DataLanes(std::size_t count) : connections_(count), missing_(count) {}

  [[nodiscard]] std::size_t count() const noexcept { return connections_.size(); }
  /// Whether the connection `number` of `count` may be added.
  [[nodiscard]] bool waits_for(std::size_t number, std::size_t count) const noexcept;
  /// REQUIRES waits_for(number, count()).
  void add(std::size_t number, std::shared_ptr<transport::Connection> connection);
  [[nodiscard]] bool complete() const noexcept { return !connections_.empty() && missing_ == 0; }
  /// REQUIRES complete().
  void send(wire::Frame frame, engine::Lane lane);
  /// Bytes that no kernel has taken yet.
  [[nodiscard]] std::size_t queued_bytes() const;
  /// By all connections, parts of frames as well.
  [[nodiscard]] std::uint64_t received_bytes() const;
  void close();

 private:
  std::vector<std::shared_ptr<transport::Connection>> connections_;
  std::size_t missing_ = 0;
  std::size_t turn_ = 0;  // among those with equally little
  std::uint32_t sent_ = 0;
};

/// The receiving side: numbered frames of all connections, in their order.
class LaneOrder {
 public:
  /// False for a number that was there before or is too far ahead. REQUIRES frame.header.order != 0.
  [[nodiscard]] bool hold(wire::Frame frame);
  /// The one whose turn it is, if it is there.
  [[nodiscard]] std::optional<wire::Frame> next();

 private:
  std::uint32_t next_ = 0;
  std::vector<std::optional<wire::Frame>> held_;  // a ring
};

}  // namespace motley::runtime
