#include "transport/wire_cost.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "transport/tcp/net.h"
#include "transport/tcp/tls_pair.h"

namespace motley::transport {
namespace {

using LoopbackSocket = net::ip::tcp::socket;

// A round is as long as a few chunks; the fastest counts, since whatever else the machine does makes them slower.
constexpr int kRounds = 5;
constexpr std::size_t kRoundBytes = std::size_t{1} << 20;
constexpr std::size_t kTurnBytes = std::size_t{8} * kRecordBytes;

class Loopback {
 public:
  explicit Loopback(net::io_context& io) : near_(io), far_(io) {
    NetError error;
    net::ip::tcp::acceptor acceptor(io);
    const net::ip::tcp::endpoint any(net::ip::address_v4::loopback(), 0);
    acceptor.open(any.protocol(), error);
    if (!error) acceptor.bind(any, error);
    if (!error) acceptor.listen(1, error);
    if (error) return;
    const net::ip::tcp::endpoint bound = acceptor.local_endpoint(error);
    if (!error) near_.connect(bound, error);
    if (!error) acceptor.accept(far_, error);
    if (!error) near_.non_blocking(true, error);
    if (!error) far_.non_blocking(true, error);
    works_ = !error;
  }
  /// How much of it went; nothing where the other side has to read first.
  std::size_t send(std::span<const std::byte> bytes) {
    NetError error;
    const std::size_t sent = works_ ? near_.write_some(net::buffer(bytes.data(), bytes.size()), error) : bytes.size();
    if (error && error != net::error::would_block) works_ = false;
    return sent;
  }
  std::size_t receive(std::span<std::byte> bytes) {
    NetError error;
    const std::size_t received = far_.read_some(net::buffer(bytes.data(), bytes.size()), error);
    if (error && error != net::error::would_block) works_ = false;
    return received;
  }
  [[nodiscard]] bool works() const noexcept { return works_; }

 private:
  LoopbackSocket near_, far_;
  bool works_ = false;
};

class Course {
 public:
  Course(bool encrypted, double (*processor_seconds)()) : clock_(processor_seconds), link_(io_) {
    if (encrypted) tls_.emplace();
  }

  WireCost round() {
    WireCost spent;
    for (std::size_t done = 0; done < kRoundBytes; done += kTurnBytes) turn(spent);
    return {spent.sent / kRoundBytes, spent.received / kRoundBytes};
  }

 private:
  template <class Work>
  void timed(double& seconds, Work work) {
    const double begun = clock_();
    work();
    seconds += clock_() - begun;
  }

  void turn(WireCost& spent) {
    std::span<const std::byte> out = plain_;
    timed(spent.sent, [&] {
      if (tls_) out = seal();
    });
    std::size_t received = 0;
    const std::size_t size = out.size();
    while (link_.works() && received < size) {
      timed(spent.sent, [&] { out = out.subspan(link_.send(out)); });
      timed(spent.received, [&] { received += link_.receive(std::span(sealed_).subspan(received, size - received)); });
    }
    timed(spent.received, [&] {
      if (tls_ && link_.works()) open(std::span<const std::byte>(sealed_).first(size));
    });
  }

  std::span<const std::byte> seal() {
    tls_->client().output().clear();
    for (std::size_t at = 0; at < kTurnBytes; at += kRecordBytes)
      tls_->client().seal(std::span<const std::byte>(plain_).subspan(at, kRecordBytes));
    return tls_->client().output();
  }

  void open(std::span<const std::byte> sealed) {
    tls_->server().provide(sealed);
    for (std::size_t at = 0; at < kTurnBytes; at += kRecordBytes)
      tls_->server().open(std::span(opened_).subspan(at, kRecordBytes));
  }

  double (*clock_)();
  net::io_context io_;
  Loopback link_;
  std::optional<TlsPair> tls_;
  std::vector<std::byte> plain_ = std::vector<std::byte>(kTurnBytes), opened_ = plain_;
  std::vector<std::byte> sealed_ = std::vector<std::byte>(2 * kTurnBytes);
};

}  // namespace

WireCost measure_wire_cost(bool encrypted, double (*processor_seconds)()) {
  Course course(encrypted, processor_seconds);
  WireCost least = course.round();
  for (int i = 1; i < kRounds; ++i) {
    const WireCost next = course.round();
    if (next.sent + next.received < least.sent + least.received) least = next;
  }
  return least;
}

}  // namespace motley::transport
