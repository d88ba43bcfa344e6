// The part of Connections for who fetches files that the head's script offers.

#include <algorithm>

#include "runtime/head/connections.h"
#include "wire/limits.h"

namespace motley::runtime {

void Connections::open_files(LinkId id, Link& link) {
  const auto fetches = [](const auto& each) { return each.second.role == LinkRole::files; };
  const bool full = static_cast<std::size_t>(std::ranges::count_if(links_, fetches)) >= wire::kSessionsMax;
  link.role = LinkRole::files;
  if (full)
    return end_files(id, {"full", "at most " + std::to_string(wire::kSessionsMax) + " that fetch", "one more", {}});
  if (desk_) return desk_->open(id, link.connection);
  end_files(id, {"data", "files that the head's script offers", "none: it has not called motley.files()",
                 "start the same script with the same arguments on all machines"});
}

void Connections::on_files_frame(LinkId id, const wire::Frame& frame) {
  constexpr std::size_t kQuestionBytesMax = 1024;
  if (frame.header.type != wire::FrameType::control || frame.body.size() > kQuestionBytesMax)
    return end_files(id, {"protocol", "Want", "another frame", {}});
  const Result<wire::Message> message = wire::decode(frame.body.bytes());
  if (!message) return end_files(id, {"protocol", "Want", message.error().message, {}});
  const auto* want = std::get_if<wire::Want>(&*message);
  if (want == nullptr) return end_files(id, {"protocol", "Want", std::string(wire::name_of(*message)), {}});
  if (Status asked = desk_->ask(id, *want); !asked) end_files(id, {"protocol", {}, asked.error().message, {}});
}

void Connections::end_files(LinkId id, const wire::Bye& bye) {
  const std::shared_ptr<transport::Connection> connection = links_.at(id).connection;
  links_.erase(id);
  if (desk_) desk_->close(id);
  connection->send(control_frame(options_.token.run, bye), transport::Priority::control);
  connection->close();
}

void Connections::close_files(const wire::Bye& bye) {
  std::vector<LinkId> fetching;
  for (const auto& [id, link] : links_)
    if (link.role == LinkRole::files) fetching.push_back(id);
  for (const LinkId id : fetching) end_files(id, bye);
}

}  // namespace motley::runtime
