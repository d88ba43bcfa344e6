#pragma once
// A connection by which weights come from another worker, and gradients go to it. Any thread.

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "runtime/worker/peer_link.h"
#include "runtime/worker/untaken.h"
#include "wire/frame.h"

namespace motley::runtime {

class WeightsLink final : PeerLink::User {
 public:
  using Event = std::variant<PeerLink::Connected, PeerLink::Broken, PeerLink::Refused, wire::Frame>;
  /// Where the events of one link after the other come. Any thread.
  class Inbox {
   public:
    /// `told`: each time that something came, with the mutex held.
    explicit Inbox(std::function<void()> told) : told_(std::move(told)) {}
    using Entry = std::pair<std::uint64_t, Event>;  // by the link's number
    [[nodiscard]] std::optional<Entry> take();

   private:
    friend class WeightsLink;
    // With the mutex held. False: too much waits to be taken.
    bool put(std::uint64_t number, const wire::Frame& frame);
    void tell(std::uint64_t number, Event event);

    const std::function<void()> told_;
    std::mutex mutex_;
    std::deque<Entry> entries_;
    Untaken untaken_;
  };

  /// REQUIRES inbox outlives this.
  WeightsLink(fleet::JoinToken token, const std::string& name, transport::Identity identity, Inbox& inbox,
              std::uint64_t number);

  void dial() { link_.dial(); }
  /// Lost where there is no connection that is proven.
  void send_gradient(const wire::Frame& frame);

 private:
  void connected() override { inbox_.tell(number_, PeerLink::Connected{}); }
  bool hear(const wire::Message& message) override;
  void take(const wire::Frame& frame) override;
  void ended(PeerLink::End end) override;

  Inbox& inbox_;
  const std::uint64_t number_;
  PeerLink link_;
};

}  // namespace motley::runtime
