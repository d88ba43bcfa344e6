#pragma once
// Datagrams to a group of machines on the networks that this one is in (IPv4). Who is not on one of them is not heard.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "motley/result.h"
#include "transport/addresses.h"

namespace motley::transport {

struct MulticastGroup {
  std::string address;  // "224.0.0.251"
  std::uint16_t port = 0;
};
/// Of DNS on the local network (RFC 6762).
inline const MulticastGroup kMulticastDns{"224.0.0.251", 5353};

struct Datagram {
  std::span<const std::byte> bytes;  // valid as long as the handler runs
  std::size_t network = 0;           // in networks()
  std::string address;               // of who sent it
  std::uint16_t port = 0;
};

class Multicast {
 public:
  using Handler = std::function<void(Multicast&, const Datagram&)>;

  /// Hears what is sent to the group, and calls `handler` on a thread of its own; it may send from there. Shares the
  /// port with whoever shares it too. Errors: network (this machine is in no network; another program has the port for
  /// itself; the system refuses).
  static Result<std::unique_ptr<Multicast>> open(const MulticastGroup& group, Handler handler);
  ~Multicast();  // `handler` is not called any more when it returns
  Multicast(const Multicast&) = delete;
  Multicast& operator=(const Multicast&) = delete;

  [[nodiscard]] const std::vector<LocalNetwork>& networks() const noexcept;
  /// To the whole group on one of the networks, or to one machine. A datagram may be lost at any time, and one that the
  /// system refuses is. Any thread.
  void send(std::vector<std::byte> bytes, std::size_t network);
  void send_to(std::vector<std::byte> bytes, const std::string& address, std::uint16_t port);
  /// Waits until what was asked to be sent is handed to the system. Any thread but the handler's.
  void flush();

 private:
  struct Impl;
  explicit Multicast(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// "10.0.0.1" as bytes; zeros where it is no IPv4 address.
std::array<std::uint8_t, 4> ipv4_bytes(const std::string& address);

}  // namespace motley::transport
