#pragma once
// Where other machines that the head names get blocks of files that this one has whole. The port is open as long as
// somebody may come: who proves the secret that the head drew for him, with the key that he showed to the head. Any
// thread, but admit() and dismiss() are for one.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "fleet/token.h"
#include "motley/result.h"
#include "runtime/head/block_desk.h"
#include "transport/tcp/tcp.h"
#include "wire/messages.h"

namespace motley::runtime {

class BlockDoor {
 public:
  static constexpr std::size_t kGuestsMax = 16;

  /// `token`: of the head whose files these are.
  BlockDoor(std::shared_ptr<const Offers> offers, const fleet::JoinToken& token, transport::Identity identity);
  ~BlockDoor();
  BlockDoor(const BlockDoor&) = delete;
  BlockDoor& operator=(const BlockDoor&) = delete;

  /// Where that guest finds this machine. Errors: network; busy, where there are too many.
  Result<wire::Source> admit(const wire::Guest& guest);
  void dismiss(std::uint64_t id);
  void dismiss_all();
  /// See BlockDesk.
  void step(double seconds, std::uint64_t samples) { desk_.step(seconds, samples); }
  void set_training(bool training) { desk_.set_training(training); }

 private:
  class Receiver;
  using LinkId = std::uint64_t;
  struct Link {
    std::shared_ptr<transport::Connection> connection;
    std::uint64_t guest = 0;  // that it says it is; 0: it has not said Hello
    bool proven = false;
  };
  Status open();
  void accept(const std::shared_ptr<transport::Connection>& connection);
  void on_frame(LinkId id, const wire::Frame& frame);
  void on_closed(LinkId id);
  // With the mutex held.
  void on_message(LinkId id, Link& link, const wire::Message& message);
  [[nodiscard]] bool is_proof(const Link& link, const wire::Proof& proof) const;
  void end(LinkId id, const wire::Bye& bye);

  const fleet::JoinToken token_;  // of this door, but for what each guest has of his own
  const transport::Identity identity_;
  BlockDesk desk_;
  std::mutex mutex_;
  std::map<std::uint64_t, wire::Guest> guests_;  // by their number
  std::map<LinkId, Link> links_;
  LinkId next_ = 1;
  std::unique_ptr<transport::Tcp> tcp_;  // its threads end before what they call
  std::unique_ptr<transport::Listener> listener_;
};

}  // namespace motley::runtime
