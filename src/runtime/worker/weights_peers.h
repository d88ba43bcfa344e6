#pragma once
// Weights from worker to worker, and gradients the other way: the door for who follows this one, and the link to whom
// it follows. Of one thread, which is the mailbox's.

#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "fleet/token.h"
#include "motley/result.h"
#include "runtime/worker/peer_door.h"
#include "runtime/worker/untaken.h"
#include "runtime/worker/weights_link.h"
#include "transport/crypto.h"
#include "wire/messages.h"

namespace motley::runtime {

class WeightsPeers final : PeerDoor::Room {
 public:
  /// `came`: take() or take_from_guest() has something; called on any thread.
  WeightsPeers(fleet::JoinToken token, std::string name, transport::Identity identity, std::function<void()> came);

  /// Where that guest finds this machine. Errors: as PeerDoor::admit().
  Result<wire::Source> let_in(const wire::Guest& guest) { return door_.admit(guest); }
  void let_out(std::uint64_t id) { door_.dismiss(id); }
  /// One at a time. Its first events are Connected, or Broken or Refused; then come frames. False: it cannot be.
  bool follow(const wire::Source& source);
  void unfollow(std::uint64_t id);
  /// To all that were let in; who leaves more than `unread_max` bytes unread is let out.
  void hand_on(const wire::Frame& frame, std::size_t unread_max);
  /// A gradient to whom it follows.
  void hand_up(std::uint64_t source, const wire::Frame& frame);
  void close();
  /// That were let in and have come.
  [[nodiscard]] std::size_t guests();

  using Event = WeightsLink::Inbox::Entry;  // by the number of the source
  /// The next of whom it follows now.
  [[nodiscard]] std::optional<Event> take();
  using FromGuest = std::pair<std::uint64_t, wire::Frame>;
  /// The next that a guest sent, by his number.
  [[nodiscard]] std::optional<FromGuest> take_from_guest();

 private:
  void open(PeerDoor::LinkId id, std::uint64_t guest, std::shared_ptr<transport::Connection> connection) override;
  Status hear(PeerDoor::LinkId id, const wire::Message& message) override;
  Status take(PeerDoor::LinkId id, const wire::Frame& frame) override;
  void close(PeerDoor::LinkId id) override;
  void end_link();

  const fleet::JoinToken token_;
  const std::string name_;
  const transport::Identity identity_;
  const std::function<void()> came_;
  WeightsLink::Inbox inbox_;
  std::mutex mutex_;
  struct Guest {
    std::uint64_t number = 0;
    std::shared_ptr<transport::Connection> connection;
  };
  std::map<PeerDoor::LinkId, Guest> guests_;
  std::deque<FromGuest> from_guests_;
  Untaken untaken_;  // of these
  std::unique_ptr<WeightsLink> link_;
  std::future<void> ending_;  // of the link before
  std::uint64_t followed_ = 0;
  PeerDoor door_;
};

}  // namespace motley::runtime
