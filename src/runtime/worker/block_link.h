#pragma once
// The connection by which a machine fetches files that a head offers. Any thread.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "blocks/asking.h"
#include "runtime/worker/head_link.h"

namespace motley::runtime {

class BlockLink final : HeadLink::User {
 public:
  using Connected = HeadLink::Connected;
  using Broken = HeadLink::Broken;
  using Refused = HeadLink::Refused;
  struct Content {
    blocks::Hash hash{};
    std::vector<std::byte> bytes{};
  };
  /// Steps of the run come first for now.
  struct Waits {};
  using Event = std::variant<Connected, wire::Offered, Content, Waits, Broken, Refused>;

  BlockLink(fleet::JoinToken token, const std::string& name, transport::Identity identity);

  /// What is open is asked for again once it is connected.
  void dial() { link_.dial(); }
  void ask(std::uint64_t offer);
  /// REQUIRES fewer than wire::kWantsMax are open.
  void want(const blocks::Hash& hash, std::size_t bytes);

  /// The next event where there is one. REQUIRES mutex() held.
  [[nodiscard]] std::optional<Event> take();
  [[nodiscard]] bool has_event() const { return !events_.empty(); }  // likewise
  [[nodiscard]] std::mutex& mutex() { return mutex_; }
  [[nodiscard]] std::condition_variable& changed() { return changed_; }

 private:
  void connected() override;
  bool hear(const wire::Message& message) override;
  void take(const wire::Frame& frame) override;
  void ended(HeadLink::End end) override;
  void tell(Event event);

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Event> events_;
  blocks::Asking asking_;
  std::optional<std::uint64_t> offer_;  // that was asked for
  HeadLink link_;
};

}  // namespace motley::runtime
