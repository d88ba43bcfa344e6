#pragma once
// TLS 1.3 with OpenSSL's own blocking calls on a socket, without strands, frames and queues: what Tcp's connections are
// measured against. A connection belongs to one thread; errors end the program, since nothing outside it is involved.

#include <cstddef>
#include <memory>

namespace motley::bench {

/// A certificate of its own, and the cipher that Tcp prefers where there is hardware for it.
class BlockingTlsContext {
 public:
  BlockingTlsContext();

 private:
  friend class BlockingTls;
  struct State;
  std::shared_ptr<State> state_;
};

class BlockingTls {
 public:
  /// `socket` is connected and stays the caller's.
  BlockingTls(const BlockingTlsContext& context, int socket);
  ~BlockingTls();
  BlockingTls(const BlockingTls&) = delete;
  BlockingTls& operator=(const BlockingTls&) = delete;

  void connect();
  void accept();
  void send(const char* data, std::size_t size);
  std::size_t receive(char* data, std::size_t size);  // at least one byte

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace motley::bench
