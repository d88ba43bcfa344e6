#pragma once
// Where other machines that the head names get something from this one. The port is open as long as somebody may come:
// who proves the secret that the head drew for him, with the key that he showed to the head. Any thread, but admit()
// and dismiss() are for one.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "fleet/token.h"
#include "motley/result.h"
#include "transport/tcp/tcp.h"
#include "wire/messages.h"

namespace motley::runtime {

class PeerDoor {
 public:
  static constexpr std::size_t kGuestsMax = 16;
  using LinkId = std::uint64_t;
  /// What there is behind the door. Called with the door's mutex held.
  class Room {
   public:
    virtual ~Room() = default;
    virtual void open(LinkId id, std::uint64_t guest, std::shared_ptr<transport::Connection> connection) = 0;
    /// ErrorCode::protocol where a guest may not say that.
    virtual Status hear(LinkId id, const wire::Message& message) = 0;
    virtual void close(LinkId id) = 0;  // also of who was never let in
  };

  /// `token`: of the head that names the guests. `feature`: of Hello, which these have. REQUIRES room outlives this.
  PeerDoor(const fleet::JoinToken& token, transport::Identity identity, std::string feature, Room& room);
  ~PeerDoor() { dismiss_all(); }
  PeerDoor(const PeerDoor&) = delete;
  PeerDoor& operator=(const PeerDoor&) = delete;

  /// Where that guest finds this machine. Errors: network; busy, where there are too many.
  Result<wire::Source> admit(const wire::Guest& guest);
  void dismiss(std::uint64_t id);
  void dismiss_all();

 private:
  class Receiver;
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
  const std::string feature_;
  Room& room_;
  std::mutex mutex_;
  std::map<std::uint64_t, wire::Guest> guests_;  // by their number
  std::map<LinkId, Link> links_;
  LinkId next_ = 1;
  std::unique_ptr<transport::Tcp> tcp_;  // its threads end before what they call
  std::unique_ptr<transport::Listener> listener_;
};

}  // namespace motley::runtime
