#pragma once
// Tells the local network that a head is here, for as long as this lives. Its thread answers; any other may own it.

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "discovery/heads.h"
#include "motley/result.h"
#include "transport/crypto.h"
#include "transport/multicast.h"

namespace motley::runtime {

class Announcer {
 public:
  /// Errors: network.
  static Result<std::unique_ptr<Announcer>> open(const std::string& machine, const transport::Digest& key,
                                                 std::uint16_t port);
  ~Announcer();
  Announcer(const Announcer&) = delete;
  Announcer& operator=(const Announcer&) = delete;

 private:
  explicit Announcer(discovery::Announcement announcement) : announcement_(std::move(announcement)) {}
  void on_datagram(transport::Multicast& multicast, const transport::Datagram& datagram);
  void tell_all(bool begins);

  discovery::Announcement announcement_;
  std::unique_ptr<transport::Multicast> multicast_;  // goes before what its thread uses
};

}  // namespace motley::runtime
