#pragma once
// What measures and tries TLS without a socket. Private to tcp/.

#include <cstdint>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "transport/crypto.h"
#include "transport/tcp/tls.h"

namespace motley::transport {

/// Two ends of TLS in memory, after their handshake.
class TlsPair {
 public:
  explicit TlsPair(std::uint64_t records_a_key = TlsSession::kRecordsAKey)
      : client_(context_, TlsRole::client, {}, records_a_key), server_(context_, TlsRole::server, {}, records_a_key) {
    using Step = TlsSession::Step;
    for (Step client = Step::want_input, server = Step::want_input; client != Step::done || server != Step::done;) {
      client = client_.handshake();
      server = pass(client_, server_).handshake();
      pass(server_, client_);
      MOTLEY_ASSERT(client != Step::failed && server != Step::failed);
    }
  }
  TlsSession& client() { return client_; }
  TlsSession& server() { return server_; }

 private:
  TlsSession& pass(TlsSession& from, TlsSession& to) {
    std::vector<std::byte>& way = &to == &server_ ? to_server_ : to_client_;
    way = std::exchange(from.output(), {});
    to.provide(way);
    return to;
  }

  TlsContext context_{make_identity()};
  TlsSession client_, server_;
  std::vector<std::byte> to_server_, to_client_;
};

}  // namespace motley::transport
