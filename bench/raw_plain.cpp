#include "base/assert.h"
#include "loopback.h"
#include "raw.h"

namespace motley::bench {
namespace {

class PlainStream final : public RawStream {
 public:
  explicit PlainStream(int socket) : socket_(socket) {}
  PlainStream(const PlainStream&) = delete;
  PlainStream& operator=(const PlainStream&) = delete;
  ~PlainStream() override { close_socket(socket_); }
  void send(const char* data, std::size_t size) override {
    while (size > 0) {
      const long count = send_some(socket_, data, size);
      MOTLEY_ASSERT(count > 0);
      data += count;
      size -= static_cast<std::size_t>(count);
    }
  }
  std::size_t receive(char* data, std::size_t size) override {
    const long count = receive_some(socket_, data, size);
    MOTLEY_ASSERT(count > 0);
    return static_cast<std::size_t>(count);
  }

 private:
  int socket_;
};

}  // namespace

Result<std::pair<int, int>> raw_sockets() {
  if (const auto sockets = connect_loopback()) return *sockets;
  return Error{ErrorCode::io, "no TCP connection from 127.0.0.1 to itself", "motley doctor"};
}

Result<RawPair> raw_plain() {
  const Result<std::pair<int, int>> sockets = raw_sockets();
  if (!sockets) return sockets.error();
  return RawPair(std::make_unique<PlainStream>(sockets->first), std::make_unique<PlainStream>(sockets->second));
}

}  // namespace motley::bench
