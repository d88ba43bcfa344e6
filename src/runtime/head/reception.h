#pragma once
// Where workers of other processes come in, for all runs of a launch one after the other: a script may make several,
// and whoever joined one finds the next by the same token. Between two runs the door stays open, and who comes waits
// there. open(), receive() and pause() are for the thread that makes the runs; guests come on threads of the transport.

#include <unistd.h>

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "fleet/token.h"
#include "runtime/head/head_listener.h"
#include "runtime/head/invitations.h"
#include "transport/connection.h"
#include "transport/crypto.h"
#include "transport/tcp/tcp.h"

namespace motley::runtime {

class Reception {
 public:
  Reception() = default;
  ~Reception();
  Reception(const Reception&) = delete;
  Reception& operator=(const Reception&) = delete;

  /// `listen`, `usual_port`: of open_listener(). Completes the token by the way here. REQUIRES it is not open.
  Status open(transport::Identity identity, const std::string& listen, std::uint16_t usual_port,
              fleet::JoinToken token);
  [[nodiscard]] bool is_open() const noexcept { return head_listener_.has_value(); }
  /// REQUIRES is_open(), both.
  [[nodiscard]] const fleet::JoinToken& token() const noexcept { return token_; }
  [[nodiscard]] const transport::Identity& identity() const noexcept { return identity_; }

  /// Writes the token to a file, for who reads it there. It goes with the end of the last run, if that is over.
  /// REQUIRES is_open().
  Status show_in(const std::string& file);
  /// The newest run has ended. over: it is not to be resumed. `guests`: of its directory.
  void ended(bool over, GuestList guests = {}) {
    over_ = over;
    guests_ = std::move(guests);
  }
  /// Whom the run before knew.
  [[nodiscard]] const GuestList& guests() const noexcept { return guests_; }
  /// Who waits comes in now, and from here on whoever comes.
  void receive(transport::AcceptHandler guest);
  /// When it returns, `guest` is not called any more: who comes waits.
  void pause();
  /// Nobody comes any more, and its threads have ended: they need libraries that are gone when a process ends.
  /// Idempotent.
  void close();

 private:
  void come(std::shared_ptr<transport::Connection> link);
  void let_in(std::shared_ptr<transport::Connection> link);
  void remove_file();

  std::mutex mutex_;
  transport::AcceptHandler guest_;
  std::deque<std::shared_ptr<transport::Connection>> waiting_;
  transport::Identity identity_{};
  fleet::JoinToken token_{};
  GuestList guests_{};
  std::string file_{};  // that the token was shown in
  std::atomic<bool> over_ = false;
  int process_ = ::getpid();
  // The sockets go before their threads, and these before what they call.
  std::unique_ptr<transport::Tcp> tcp_;
  std::optional<HeadListener> head_listener_;
};

}  // namespace motley::runtime
