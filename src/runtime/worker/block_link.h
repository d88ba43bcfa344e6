#pragma once
// A connection by which a machine fetches files: to the head that offers them, or to another machine that has them; or
// by which it tells the head that it has them itself. Any thread.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "blocks/asking.h"
#include "runtime/worker/peer_link.h"

namespace motley::runtime {

class BlockLink final : PeerLink::User {
 public:
  static constexpr std::uint64_t kHead = 0;
  using Connected = PeerLink::Connected;
  using Broken = PeerLink::Broken;
  using Refused = PeerLink::Refused;
  struct Content {
    blocks::Hash hash{};
    std::vector<std::byte> bytes{};
  };
  /// Steps of the run come first for now.
  struct Waits {};
  using Event = std::variant<Connected, wire::Offered, Content, Waits, Broken, Refused, wire::Guest, wire::Source>;
  /// Where the events of several links come together.
  struct Inbox {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::pair<std::uint64_t, Event>> events;  // by the link's number
  };

  BlockLink(fleet::JoinToken token, const std::string& name, transport::Identity identity)
      : BlockLink(std::move(token), name, std::move(identity), std::make_shared<Inbox>(), kHead) {}
  /// `number`: kHead, or another machine, whose first wrong block is its last.
  BlockLink(fleet::JoinToken token, const std::string& name, transport::Identity identity, std::shared_ptr<Inbox> inbox,
            std::uint64_t number);

  /// What is open is asked for again once it is connected.
  void dial() { link_.dial(); }
  void ask(std::uint64_t offer);
  /// REQUIRES fewer than wire::kWantsMax are open. `waited_for`: by somebody; where it is asked for already, it is by
  /// now.
  void want(const blocks::Hash& hash, std::size_t bytes, bool waited_for = false);
  /// Lost where there is no connection that is proven.
  void send(const wire::Message& message);

  /// The next event where there is one, of an inbox of its own. REQUIRES mutex() held.
  [[nodiscard]] std::optional<Event> take();
  [[nodiscard]] bool has_event() const { return !inbox_->events.empty(); }  // likewise
  [[nodiscard]] std::mutex& mutex() { return inbox_->mutex; }
  [[nodiscard]] std::condition_variable& changed() { return inbox_->changed; }

 private:
  void connected() override;
  bool hear(const wire::Message& message) override;
  void take(const wire::Frame& frame) override;
  void ended(PeerLink::End end) override;
  void tell(Event event);
  [[nodiscard]] bool is_head() const noexcept { return number_ == kHead; }

  const std::shared_ptr<Inbox> inbox_;  // its mutex guards what follows
  const std::uint64_t number_;
  blocks::Asking asking_;
  std::optional<std::uint64_t> offer_;  // that was asked for
  PeerLink link_;
};

}  // namespace motley::runtime
