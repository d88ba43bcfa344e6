#pragma once
// The measuring side's end of a connection: what has come back so far. Private to bench.

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "bench/link_frames.h"
#include "fleet/token.h"
#include "transport/connection.h"
#include "transport/crypto.h"

namespace motley::bench {

/// What the transport's threads and the measuring one share: everything in a Lane is guarded by its mutex.
struct Shared {
  std::mutex mutex;
  std::condition_variable changed;
  bool interrupted = false;

  void interrupt();
  /// False when it was interrupted or the time was over before `holds()`, which is called with the mutex held.
  template <class Holds>
  bool wait_until(std::chrono::steady_clock::time_point time, Holds holds) {
    std::unique_lock lock(mutex);
    changed.wait_until(lock, time, [&] { return interrupted || holds(); });
    return !interrupted && holds();
  }
};

/// Bytes of one direction, and when the last of them came.
struct Flow {
  std::uint64_t bytes = 0, frames = 0;
  std::chrono::steady_clock::time_point at{};
};

class Lane final : public transport::Receiver {
 public:
  Lane(Shared& shared, const fleet::JoinToken& token, const transport::Digest& own_spki)
      : shared_(shared), token_(token), own_spki_(own_spki) {}

  /// Takes the connection and sends the proof. Once.
  void begin(std::shared_ptr<transport::Connection> connection);
  [[nodiscard]] transport::Connection& connection() { return *connection_; }
  void say(const Word& word, transport::Priority priority = transport::Priority::control);
  /// An echo whose answer is waited for.
  void ping(transport::Priority priority);
  /// Drops the connection, which holds this. Nothing may be called after.
  void close();

  void on_frame(wire::Frame frame) override;
  void on_closed(Error error) override;

  // Guarded by the mutex of Shared.
  bool proven = false, done = false;
  std::optional<Error> failure;
  std::optional<Interface> facts;
  Flow up, down;
  std::map<std::uint64_t, std::chrono::steady_clock::time_point> pings;  // not answered yet
  std::vector<double> trips_ms;

 private:
  void on_proof(const wire::Frame& frame);
  void on_word(const Word& word);

  Shared& shared_;
  const fleet::JoinToken& token_;
  const transport::Digest own_spki_;
  std::shared_ptr<transport::Connection> connection_;
  std::uint64_t last_ping_ = 0;
};

}  // namespace motley::bench
