#include "runtime/head/file_sources.h"

#include <algorithm>
#include <iterator>

#include "transport/crypto.h"

namespace motley::runtime {

std::vector<FileSources::Meeting> FileSources::keeps(LinkId link, const Key& key, const blocks::Hash& set, bool whole) {
  Machine& machine = machines_[link];
  machine.key = key;
  if (!whole) {
    machine.fetches = set;
  } else if (std::ranges::find(machine.whole, set) == machine.whole.end()) {
    machine.whole.push_back(set);
  }
  std::vector<LinkId> others;
  others.reserve(machines_.size());
  for (const auto& [id, other] : machines_) others.push_back(id);
  std::ranges::sort(others, {}, [this](LinkId id) { return std::pair(meetings_of(id), id); });  // who has least to do
  std::vector<Meeting> fresh;
  for (const LinkId other : others) {
    const LinkId server = whole ? link : other, guest = whole ? other : link;
    if (!suit(server, guest)) continue;
    Meeting meeting{server, guest, transport::random_u64(), {}};
    transport::random_bytes(meeting.secret);
    meetings_.push_back(meeting);
    fresh.push_back(meeting);
  }
  return fresh;
}

// Processes of one machine have what one of them fetched.
bool FileSources::suit(LinkId server, LinkId guest) const {
  const Machine &has = machines_.at(server), &lacks = machines_.at(guest);
  const bool same_machine = has.key == lacks.key && has.key != Key{};
  const bool met =
      std::ranges::any_of(meetings_, [&](const Meeting& each) { return each.server == server && each.guest == guest; });
  return server != guest && !same_machine && !met && lacks.fetches &&
         std::ranges::find(has.whole, *lacks.fetches) != has.whole.end() && meetings_of(server) < kGuestsMax &&
         meetings_of(guest) < kServersMax;
}

std::size_t FileSources::meetings_of(LinkId link) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      meetings_, [link](const Meeting& each) { return each.server == link || each.guest == link; }));
}

bool FileSources::serves(LinkId link) const {
  const auto found = machines_.find(link);
  return found != machines_.end() && !found->second.whole.empty();
}

std::size_t FileSources::serving() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(machines_, [](const auto& each) { return !each.second.whole.empty(); }));
}

std::optional<FileSources::Meeting> FileSources::meeting(LinkId server, std::uint64_t id) const {
  const auto found =
      std::ranges::find_if(meetings_, [&](const Meeting& each) { return each.server == server && each.id == id; });
  if (found == meetings_.end()) return std::nullopt;
  return *found;
}

std::vector<FileSources::Meeting> FileSources::close(LinkId link) {
  machines_.erase(link);
  const auto over = [link](const Meeting& each) { return each.server == link || each.guest == link; };
  std::vector<Meeting> ended;
  std::ranges::copy_if(meetings_, std::back_inserter(ended), over);
  std::erase_if(meetings_, over);
  return ended;
}

}  // namespace motley::runtime
