#pragma once
// What Motley's connections are measured against: blocking sockets, plain and with OpenSSL's own calls, that move the
// same bytes without frames, checksums or queues.

#include <cstddef>
#include <memory>
#include <utility>

#include "motley/result.h"

namespace motley::bench {

/// Errors end the program: nothing outside this process is involved.
class RawStream {
 public:
  virtual ~RawStream() = default;
  virtual void send(const char* data, std::size_t size) = 0;
  virtual std::size_t receive(char* data, std::size_t size) = 0;  // at least one byte
};

using RawPair = std::pair<std::unique_ptr<RawStream>, std::unique_ptr<RawStream>>;

/// Two connected TCP sockets on loopback. Errors: io.
Result<std::pair<int, int>> raw_sockets();
Result<RawPair> raw_plain();
/// TLS 1.3 with the cipher that Motley prefers where there is hardware for it.
Result<RawPair> raw_tls();

}  // namespace motley::bench
