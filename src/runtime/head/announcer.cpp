#include "runtime/head/announcer.h"

#include "runtime/mailbox.h"

namespace motley::runtime {

Result<std::unique_ptr<Announcer>> Announcer::open(const std::string& machine, const transport::Digest& key,
                                                   std::uint16_t port) {
  std::unique_ptr<Announcer> announcer(new Announcer(discovery::Announcement(machine, key, port)));
  Result<std::unique_ptr<transport::Multicast>> multicast = transport::Multicast::open(
      transport::kMulticastDns, [self = announcer.get()](transport::Multicast& from, const transport::Datagram& what) {
        self->on_datagram(from, what);
      });
  if (!multicast) return multicast.error();
  announcer->multicast_ = std::move(*multicast);
  announcer->tell_all(true);
  return announcer;
}

Announcer::~Announcer() {
  if (!multicast_) return;
  tell_all(false);
  multicast_->flush();
}

void Announcer::on_datagram(transport::Multicast& multicast, const transport::Datagram& datagram) {
  const std::optional<discovery::Message> message = discovery::parse(datagram.bytes);
  if (!message) return;
  const auto ip = transport::ipv4_bytes(multicast.networks()[datagram.network].address);
  auto reply = announcement_.answer(*message, datagram.network, ip, datagram.port, now());
  if (!reply) return;
  if (reply->to_all) return multicast.send(std::move(reply->bytes), datagram.network);
  multicast.send_to(std::move(reply->bytes), datagram.address, datagram.port);
}

void Announcer::tell_all(bool begins) {
  const auto& networks = multicast_->networks();
  for (std::size_t i = 0; i < networks.size(); ++i)
    multicast_->send(announcement_.unasked(transport::ipv4_bytes(networks[i].address), begins), i);
}

}  // namespace motley::runtime
