#pragma once
// What one Tcp owns: the reactor with its threads, the count of its connections, and the limits for those that have
// not proven themselves. Private to tcp/. Every method may be called from any thread.

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "transport/tcp/address.h"
#include "transport/tcp/admission.h"
#include "transport/tcp/core.h"
#include "transport/tcp/net.h"
#include "transport/tcp/tcp.h"

namespace motley::transport {

/// Something that runs on the reactor and must end before the threads do: a listener, an attempt to connect.
class Activity {
 public:
  virtual ~Activity() = default;
  virtual void stop() = 0;
};

class Hub final : public CoreHost {
 public:
  explicit Hub(TcpOptions options);
  ~Hub() override;
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;

  [[nodiscard]] net::io_context& io() { return reactor_->io; }
  [[nodiscard]] bool plaintext() const { return options_.plaintext; }

  /// A socket somebody connected to us. `on_accept` gets it after its handshake.
  void accepted(Socket socket, std::shared_ptr<const AcceptHandler> on_accept);
  /// A socket we connected; the caller starts the handshake.
  std::shared_ptr<Core> connected(Socket socket, const Peer& peer, std::optional<Digest> pin);

  /// False when the hub is closing: the activity must end at once.
  [[nodiscard]] bool add(const std::shared_ptr<Activity>& activity);
  void remove(const Activity* activity);
  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }

  void use_threads(std::size_t count);
  /// Sends what is queued, closes everything, joins the threads. Not on one of them.
  void shut_down();

 private:
  struct Waiting {
    std::shared_ptr<Core> core;
    std::shared_ptr<const AcceptHandler> on_accept;
  };

  void proven(std::uint64_t id) override;
  void gone(std::uint64_t id, bool dropped) override;
  std::shared_ptr<Core> make_core(Socket socket, const Peer& peer, CoreSetup setup);
  void pump_handshakes();
  void heard(const Waiting& waiting, const std::string& source, Knocks::Who who);
  void begin_handshake(const Waiting& waiting);
  std::shared_ptr<Core> find(std::optional<std::uint64_t> id);  // REQUIRES the mutex held
  void leave_door(std::uint64_t id);                            // likewise
  [[nodiscard]] std::vector<std::shared_ptr<Core>> all_cores();
  bool wait_until_empty(std::chrono::milliseconds time);

  TcpOptions options_;
  std::shared_ptr<const TlsContext> tls_;
  std::shared_ptr<Reactor> reactor_;
  net::executor_work_guard<net::io_context::executor_type> work_;
  net::steady_timer gate_timer_;  // guarded by mutex_
  std::atomic<std::uint64_t> dropped_{0};

  std::mutex mutex_;
  std::condition_variable empty_;
  bool closing_ = false;
  std::vector<std::thread> threads_;
  std::uint64_t last_id_ = 0;
  std::map<std::uint64_t, std::weak_ptr<Core>> cores_;
  std::map<std::uint64_t, Waiting> waiting_;  // heard, handshake not begun
  std::map<const Activity*, std::shared_ptr<Activity>> activities_;
  Admission silent_, strangers_, known_;  // until they have proven themselves
  Knocks knocks_;
  HandshakeGate gate_;
};

/// The handle users hold. Dropping the last one closes.
std::shared_ptr<Connection> make_connection(std::shared_ptr<Core> core);

}  // namespace motley::transport
