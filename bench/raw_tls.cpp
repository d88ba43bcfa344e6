#include <thread>

#include "blocking_tls.h"
#include "loopback.h"
#include "raw.h"

namespace motley::bench {
namespace {

class TlsStream final : public RawStream {
 public:
  TlsStream(const BlockingTlsContext& context, int socket) : tls_(context, socket), socket_(socket) {}
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;
  ~TlsStream() override { close_socket(socket_); }
  void connect() { tls_.connect(); }
  void accept() { tls_.accept(); }
  void send(const char* data, std::size_t size) override { tls_.send(data, size); }
  std::size_t receive(char* data, std::size_t size) override { return tls_.receive(data, size); }

 private:
  BlockingTls tls_;
  int socket_;
};

}  // namespace

Result<RawPair> raw_tls() {
  const Result<std::pair<int, int>> sockets = raw_sockets();
  if (!sockets) return sockets.error();
  const BlockingTlsContext context;
  auto near = std::make_unique<TlsStream>(context, sockets->first);
  auto far = std::make_unique<TlsStream>(context, sockets->second);
  std::thread other([&far] { far->accept(); });
  near->connect();
  other.join();
  return RawPair(std::move(near), std::move(far));
}

}  // namespace motley::bench
