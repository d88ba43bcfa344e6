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
      : near_(context_, TlsRole::client, {}, records_a_key), far_(context_, TlsRole::server, {}, records_a_key) {
    using Step = TlsSession::Step;
    for (Step near = Step::want_input, far = Step::want_input; near != Step::done || far != Step::done;) {
      near = near_.handshake();
      far = pass(near_, far_).handshake();
      pass(far_, near_);
      MOTLEY_ASSERT(near != Step::failed && far != Step::failed);
    }
  }
  TlsSession& near() { return near_; }
  TlsSession& far() { return far_; }

 private:
  TlsSession& pass(TlsSession& from, TlsSession& to) {
    std::vector<std::byte>& way = &to == &far_ ? to_far_ : to_near_;
    way = std::exchange(from.output(), {});
    to.provide(way);
    return to;
  }

  TlsContext context_{make_identity()};
  TlsSession near_, far_;
  std::vector<std::byte> to_far_, to_near_;
};

}  // namespace motley::transport
