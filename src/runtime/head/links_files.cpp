// The part of Links for who fetches files that the head's script offers.

#include <algorithm>

#include "runtime/head/links.h"
#include "wire/limits.h"

namespace motley::runtime {
namespace {

/// "192.168.1.7" of "192.168.1.7:51344"; empty for a process of this machine.
std::string host_of(const std::string& address) {
  const std::size_t end = address.rfind(':');
  if (end == std::string::npos) return {};
  const bool brackets = address.starts_with('[');
  return brackets ? address.substr(1, end - 2) : address.substr(0, end);
}

}  // namespace

void Links::open_files(LinkId id, Link& link) {
  const auto fetches = [this](const auto& each) {
    return each.second.role == LinkRole::files && !sources_.serves(each.first);
  };
  const bool full = static_cast<std::size_t>(std::ranges::count_if(links_, fetches)) >= wire::kSessionsMax;
  link.role = LinkRole::files;
  if (full)
    return end_files(id, {"full", "at most " + std::to_string(wire::kSessionsMax) + " that fetch", "one more", {}});
  if (desk_) return desk_->open(id, link.connection);
  end_files(id, {"data", "files that the head's script offers", "none: it has not called motley.files()",
                 "start the same script with the same arguments on all machines"});
}

void Links::on_files_frame(LinkId id, const wire::Frame& frame) {
  constexpr std::size_t kQuestionBytesMax = 1024;
  if (frame.header.type != wire::FrameType::control || frame.body.size() > kQuestionBytesMax)
    return end_files(id, {"protocol", "Want", "another frame", {}});
  const Result<wire::Message> message = wire::decode(frame.body.bytes());
  if (!message) return end_files(id, {"protocol", "Want", message.error().message, {}});
  if (const auto* want = std::get_if<wire::Want>(&*message)) return on_want(id, *want);
  if (const auto* keeps = std::get_if<wire::Keeps>(&*message)) return on_keeps(id, *keeps);
  if (const auto* source = std::get_if<wire::Source>(&*message)) return on_source(id, *source);
  end_files(id, {"protocol", "Want", std::string(wire::name_of(*message)), {}});
}

void Links::on_want(LinkId id, const wire::Want& want) {
  if (sources_.serves(id)) return end_files(id, {"protocol", "Keeps or Source", "Want", {}});
  if (Status asked = desk_->ask(id, want); !asked) end_files(id, {"protocol", {}, asked.error().message, {}});
}

// Who hands a set on asks for nothing: the desk is to pace itself by those who do. A process of the head's own machine
// has no key that others know it by, and no link but the head's.
void Links::on_keeps(LinkId id, const wire::Keeps& keeps) {
  const transport::PeerIdentity& peer = links_.at(id).connection->peer();
  if (peer.same_machine && !keeps.whole) return;
  if (peer.same_machine) return end_files(id, {"enough", {}, "the head's own machine hands nothing on twice", {}});
  blocks::Hash set{};
  std::ranges::copy(keeps.sha256, set.begin());
  if (keeps.sha256.size() != set.size() || !options_.offers->has_set(set)) return;
  if (keeps.whole && !sources_.serves(id) && sources_.serving() >= wire::kSessionsMax)
    return end_files(id, {"enough", {}, "there are machines enough that hand files on", {}});
  if (keeps.whole) desk_->close(id);
  for (const FileSources::Meeting& meeting : sources_.keeps(id, peer.spki, set, keeps.whole)) {
    wire::Guest guest{.id = meeting.id, .secret = {meeting.secret.begin(), meeting.secret.end()}, .spki = {}};
    if (!options_.token.plaintext) {
      const FileSources::Key& of = sources_.key(meeting.guest);
      guest.spki.assign(of.begin(), of.end());
    }
    links_.at(meeting.server).connection->send(control_frame(options_.token.run, guest), transport::Priority::control);
  }
}

// The address by which the head sees that machine is one more by which others may.
void Links::on_source(LinkId id, const wire::Source& source) {
  const std::optional<FileSources::Meeting> meeting = sources_.meeting(id, source.id);
  if (!meeting) return;  // its guest has gone meanwhile
  wire::Source named = source;
  const transport::PeerIdentity& peer = links_.at(id).connection->peer();
  const std::string address = host_of(peer.address);
  if (!address.empty() && std::ranges::count(named.addresses, address) == 0)
    named.addresses.insert(named.addresses.begin(), address);
  named.spki.clear();
  if (!options_.token.plaintext) named.spki.assign(peer.spki.begin(), peer.spki.end());
  named.secret.assign(meeting->secret.begin(), meeting->secret.end());
  links_.at(meeting->guest).connection->send(control_frame(options_.token.run, named), transport::Priority::control);
}

void Links::end_files(LinkId id, const wire::Bye& bye) {
  const std::shared_ptr<transport::Connection> connection = links_.at(id).connection;
  links_.erase(id);
  forget_files(id);
  connection->send(control_frame(options_.token.run, bye), transport::Priority::control);
  connection->close();
}

void Links::forget_files(LinkId id) {
  if (desk_) desk_->close(id);
  for (const FileSources::Meeting& over : sources_.close(id)) {
    if (over.guest != id) continue;  // it was the one who handed on
    const wire::Guest no_longer{.id = over.id, .secret = {}, .spki = {}};
    links_.at(over.server).connection->send(control_frame(options_.token.run, no_longer), transport::Priority::control);
  }
}

void Links::close_files(const wire::Bye& bye) {
  std::vector<LinkId> fetching;
  for (const auto& [id, link] : links_)
    if (link.role == LinkRole::files) fetching.push_back(id);
  for (const LinkId id : fetching) end_files(id, bye);
}

}  // namespace motley::runtime
