#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "bench/raw.h"

namespace motley::bench {
namespace {

class PlainStream final : public RawStream {
 public:
  explicit PlainStream(int socket) : socket_(socket) {}
  PlainStream(const PlainStream&) = delete;
  PlainStream& operator=(const PlainStream&) = delete;
  ~PlainStream() override { ::close(socket_); }
  void send(const char* data, std::size_t size) override {
    while (size > 0) {
      const ssize_t count = ::send(socket_, data, size, 0);
      MOTLEY_ASSERT(count > 0);
      data += count;
      size -= static_cast<std::size_t>(count);
    }
  }
  std::size_t receive(char* data, std::size_t size) override {
    const ssize_t count = ::recv(socket_, data, size, 0);
    MOTLEY_ASSERT(count > 0);
    return static_cast<std::size_t>(count);
  }

 private:
  int socket_;
};

}  // namespace

Result<std::pair<int, int>> raw_sockets() {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  bool good = listener >= 0 && ::bind(listener, generic, size) == 0 && ::listen(listener, 1) == 0;
  good = good && ::getsockname(listener, generic, &size) == 0;
  const int near = good ? ::socket(AF_INET, SOCK_STREAM, 0) : -1;
  good = good && near >= 0 && ::connect(near, generic, size) == 0;
  const int far = good ? ::accept(listener, nullptr, nullptr) : -1;
  if (listener >= 0) ::close(listener);
  if (far >= 0) return std::pair(near, far);
  if (near >= 0) ::close(near);
  return Error{ErrorCode::io, "no TCP connection from 127.0.0.1 to itself", "motley doctor"};
}

Result<RawPair> raw_plain() {
  const Result<std::pair<int, int>> sockets = raw_sockets();
  if (!sockets) return sockets.error();
  return RawPair(std::make_unique<PlainStream>(sockets->first), std::make_unique<PlainStream>(sockets->second));
}

}  // namespace motley::bench
