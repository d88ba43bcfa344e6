#pragma once
// A connection by which a machine fetches files: to the head that offers them, or to another machine that has them; by
// which it tells the head that it has them itself; or by which weights come from another worker. Any thread.

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "blocks/asking.h"
#include "fleet/token.h"
#include "motley/result.h"
#include "runtime/lanes.h"
#include "transport/tcp/tcp.h"
#include "wire/messages.h"

namespace motley::runtime {

class BlockLink {
 public:
  static constexpr std::uint64_t kHead = 0;
  struct Connected {};
  struct Content {
    blocks::Hash hash{};
    std::vector<std::byte> bytes{};
  };
  /// Steps of the run come first for now.
  struct Waits {};
  /// The connection is gone, or there was none: dial() again. `done`: the head said that its run is over.
  struct Broken {
    std::string why;
    bool done = false;
  };
  /// Another try ends in the same way.
  struct Refused {
    Error error;
  };
  using Event = std::variant<Connected, wire::Offered, Content, Waits, Broken, Refused, wire::Guest, wire::Source,
                             wire::Frame>;  // of weights
  /// Where the events of several links come together.
  struct Inbox {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::pair<std::uint64_t, Event>> events;  // by the link's number
    std::size_t untaken_bytes = 0;                       // of weights
    std::function<void()> told{};                        // each time, with the mutex held
  };

  BlockLink(fleet::JoinToken token, const std::string& name, transport::Identity identity)
      : BlockLink(std::move(token), name, std::move(identity), std::make_shared<Inbox>(), kHead) {}
  /// `number`: kHead, or another machine, whose first wrong block is its last. `feature`: of Hello, what is wanted.
  BlockLink(fleet::JoinToken token, const std::string& name, transport::Identity identity, std::shared_ptr<Inbox> inbox,
            std::uint64_t number, const std::string& feature = kFiles);
  ~BlockLink();
  BlockLink(const BlockLink&) = delete;
  BlockLink& operator=(const BlockLink&) = delete;

  /// What is open is asked for again once it is connected.
  void dial();
  void ask(std::uint64_t offer);
  /// REQUIRES fewer than wire::kWantsMax are open. `waited_for`: by somebody; where it is asked for already, it is by
  /// now.
  void want(const blocks::Hash& hash, std::size_t bytes, bool waited_for = false);
  /// Lost where there is no connection that is proven.
  void send(const wire::Message& message);
  void send(const wire::Frame& frame, transport::Priority priority);

  /// The next event where there is one, of an inbox of its own. REQUIRES mutex() held.
  [[nodiscard]] std::optional<Event> take();
  [[nodiscard]] bool has_event() const { return !inbox_->events.empty(); }  // likewise
  [[nodiscard]] std::mutex& mutex() { return inbox_->mutex; }
  [[nodiscard]] std::condition_variable& changed() { return inbox_->changed; }

 private:
  class Receiver;
  void on_dialled(std::uint64_t generation, Result<std::shared_ptr<transport::Connection>> result);
  void on_frame(std::uint64_t generation, const wire::Frame& frame);
  void on_closed(std::uint64_t generation, const std::string& why);
  // With the mutex held.
  void on_message(const wire::Message& message);
  void proven();
  void tell(Event event);
  void end(Event event);
  void send_now(const wire::Message& message);
  [[nodiscard]] bool is_head() const noexcept { return number_ == kHead; }
  [[nodiscard]] bool takes_weights() const { return hello_.features.front() != kFiles; }

  const fleet::JoinToken token_;
  const transport::Identity identity_;
  wire::Hello hello_;
  const std::shared_ptr<Inbox> inbox_;  // its mutex guards what follows
  const std::uint64_t number_;
  blocks::Asking asking_;
  std::optional<std::uint64_t> offer_;  // that was asked for
  std::shared_ptr<transport::Connection> connection_;
  bool proven_ = false;
  bool done_ = false;
  std::uint64_t generation_ = 0;
  transport::Tcp tcp_;  // its threads end before what they call
};

}  // namespace motley::runtime
