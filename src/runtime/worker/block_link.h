#pragma once
// The connection by which a machine that joins fetches files which the head's script offers. Any thread.

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "blocks/asking.h"
#include "fleet/token.h"
#include "motley/result.h"
#include "transport/tcp/tcp.h"
#include "wire/messages.h"

namespace motley::runtime {

class BlockLink {
 public:
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
  using Event = std::variant<Connected, wire::Offered, Content, Waits, Broken, Refused>;

  BlockLink(fleet::JoinToken token, const std::string& name, transport::Identity identity);
  ~BlockLink();
  BlockLink(const BlockLink&) = delete;
  BlockLink& operator=(const BlockLink&) = delete;

  /// What is open is asked for again once it is connected.
  void dial();
  void ask(std::uint64_t offer);
  [[nodiscard]] bool has_room() const;
  /// REQUIRES has_room().
  /// `waited_for`: by somebody; where it is asked for already, it is by now.
  void want(const blocks::Hash& hash, std::size_t bytes, bool waited_for = false);

  /// The next event where there is one. REQUIRES mutex() held.
  [[nodiscard]] std::optional<Event> take();
  [[nodiscard]] bool has_event() const { return !events_.empty(); }  // likewise
  [[nodiscard]] std::mutex& mutex() { return mutex_; }
  [[nodiscard]] std::condition_variable& changed() { return changed_; }

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
  void send_want(const wire::Want& want);

  const fleet::JoinToken token_;
  const transport::Identity identity_;
  wire::Hello hello_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Event> events_;
  std::size_t untaken_ = 0;  // of the events: content
  blocks::Asking asking_;
  std::optional<std::uint64_t> offer_;  // that was asked for
  std::shared_ptr<transport::Connection> connection_;
  bool proven_ = false;
  bool done_ = false;
  std::uint64_t generation_ = 0;
  transport::Tcp tcp_;  // its threads end before what they call
};

}  // namespace motley::runtime
