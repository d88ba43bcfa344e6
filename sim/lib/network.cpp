#include "sim/network.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace motley::sim {
namespace {

constexpr std::uint64_t kNetworkStream = 2;
constexpr std::size_t index(Side side) { return static_cast<std::size_t>(side); }
constexpr std::string_view kDirections[] = {"to worker", "to head"};

}  // namespace

Network::Network(EventQueue& queue, Trace& trace, NetworkOptions options)
    : queue_(queue), trace_(trace), options_(options), random_(options.seed, kNetworkStream) {}

void Network::set_link(std::size_t link, const LinkProfile& profile) { links_[link].profile = profile; }

bool Network::reachable(std::size_t link) const {
  const Link& l = links_.at(link);
  return !l.blocked[0] && !l.blocked[1];
}

Duration Network::delay(const LinkProfile& profile) {
  const double spread = 2 * random_.uniform() * seconds(profile.delay_mean - profile.delay_min);
  const double factor = random_.uniform() < profile.spike_probability ? 10 : 1;
  const double total = (seconds(profile.delay_min) + spread) * factor;
  return Duration(static_cast<std::int64_t>(total * 1e9));
}

Duration Network::round_trip(std::size_t link) {
  const LinkProfile& profile = links_.at(link).profile;
  return delay(profile) + delay(profile);
}

Network::SessionId Network::open(std::size_t link, End worker, End head) {
  MOTLEY_ASSERT(links_.contains(link));
  const SessionId id = ++last_session_;
  Session& session = sessions_[id];
  session.link = link;
  session.ends = {std::move(worker), std::move(head)};
  return id;
}

std::size_t Network::pipe_of(engine::Lane lane) const {
  if (lane == engine::Lane::control) return 0;
  return lane == engine::Lane::background && options_.own_background ? 2 : 1;
}

void Network::send(SessionId id, Side from, wire::Frame frame, engine::Lane lane) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end() || !found->second.open[index(from)]) return;
  ++frames_;
  if (found->second.dead) {
    refuse(id, from);
    return;
  }
  push(id, other(from), pipe_of(lane), {false, lane, std::move(frame)});
}

void Network::push(SessionId id, Side to, std::size_t pipe, Item item) {
  Session& session = sessions_.at(id);
  const std::size_t bytes = item.last ? 0 : wire::kHeaderBytes + item.frame.body.size();
  session.towards[index(to)][pipe].flight.push_back(std::move(item));
  if (!stalled(links_.at(session.link), to, pipe)) schedule(id, to, pipe, bytes);
}

// One event for each item under way, in their order.
void Network::schedule(SessionId id, Side to, std::size_t pipe, std::size_t bytes) {
  Session& session = sessions_.at(id);
  Pipe& p = session.towards[index(to)][pipe];
  const LinkProfile& profile = links_.at(session.link).profile;
  const Duration transmission(static_cast<std::int64_t>(static_cast<double>(bytes) / profile.bytes_per_second * 1e9));
  p.free = std::max(p.free, queue_.now()) + transmission;
  p.arrival = std::max(p.arrival, p.free + delay(profile));
  queue_.at(p.arrival, [this, id, to, pipe, epoch = p.epoch] { arrive(id, to, pipe, epoch); });
}

void Network::arrive(SessionId id, Side to, std::size_t pipe, std::uint64_t epoch) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  Session& session = found->second;
  Pipe& p = session.towards[index(to)][pipe];
  if (p.epoch != epoch) return;
  MOTLEY_ASSERT(!p.flight.empty());
  const Item item = std::move(p.flight.front());
  p.flight.pop_front();
  if (!item.last && options_.duplicate_probability > 0 && random_.uniform() < options_.duplicate_probability) {
    ++duplicates_;
    const Duration again = random_.uniform() < 0.5 ? Duration(1) : Duration(1 + random_.below(200'000'000));
    queue_.after(again, [this, id, to, item] {
      const auto later = sessions_.find(id);
      if (later != sessions_.end()) deliver(later->second, id, to, item);
    });
  }
  deliver(session, id, to, item);
}

void Network::deliver(Session& session, SessionId id, Side to, const Item& item) {
  if (!session.open[index(to)]) {
    if (!session.vanished[index(to)] && !item.last) refuse(id, other(to));
    return;
  }
  if (item.last) {
    lose(id, to, "the other side closed the connection");
    return;
  }
  const End& end = session.ends[index(to)];
  end.frame(item.frame, item.lane);
}

void Network::refuse(SessionId id, Side sender) {
  const Link& link = links_.at(sessions_.at(id).link);
  if (link.blocked[0] || link.blocked[1]) return;
  queue_.after(delay(link.profile) + delay(link.profile), [this, id, sender] { lose(id, sender, "connection reset"); });
}

void Network::lose(SessionId id, Side side, const std::string& why) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end() || !found->second.open[index(side)]) return;
  found->second.open[index(side)] = false;
  trace_.note(queue_.now(), "network", side == Side::head ? "session ends at head" : "session ends at worker", id);
  found->second.ends[index(side)].closed(why);
}

void Network::close(SessionId id, Side side) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end() || !found->second.open[index(side)]) return;
  found->second.open[index(side)] = false;
  if (found->second.dead) return;
  Item last;
  last.last = true;
  push(id, other(side), 0, std::move(last));
}

void Network::vanish(SessionId id, Side side) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  found->second.open[index(side)] = false;
  found->second.vanished[index(side)] = true;
}

void Network::reset(SessionId id, const std::string& why) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  Session& session = found->second;
  session.dead = true;
  const Link& link = links_.at(session.link);
  for (const Side side : {Side::worker, Side::head}) {
    for (Pipe& pipe : session.towards[index(side)]) {
      pipe.flight.clear();
      ++pipe.epoch;
    }
    if (!session.open[index(side)] || link.blocked[index(side)]) continue;  // it finds out by silence
    queue_.after(delay(link.profile), [this, id, side, why] { lose(id, side, why); });
  }
}

void Network::reset_link(std::size_t link, const std::string& why) {
  std::vector<SessionId> ids;
  for (const auto& [id, session] : sessions_) {
    if (session.link == link && (session.open[0] || session.open[1])) ids.push_back(id);
  }
  for (const SessionId id : ids) reset(id, why);
}

bool Network::stalled(const Link& link, Side to, std::size_t pipe) {
  return link.blocked[index(to)] || (pipe > 0 && link.data_blocked[index(to)]);
}

void Network::block(std::size_t link, Side to, bool blocked) {
  Link& l = links_.at(link);
  if (l.blocked[index(to)] == blocked) return;
  const Link before = l;
  l.blocked[index(to)] = blocked;
  trace_.note(queue_.now(), "network", blocked ? "blocked" : "opened", link);
  trace_.note(queue_.now(), "network", kDirections[index(to)]);
  restart(link, to, before);
}

void Network::block_data(std::size_t link, Side to, bool blocked) {
  Link& l = links_.at(link);
  if (l.data_blocked[index(to)] == blocked) return;
  const Link before = l;
  l.data_blocked[index(to)] = blocked;
  trace_.note(queue_.now(), "network", blocked ? "data blocked" : "data opened", link);
  restart(link, to, before);
}

// What is under way stops where it is, or goes on from there.
void Network::restart(std::size_t link, Side to, const Link& before) {
  for (auto& [id, session] : sessions_) {
    if (session.link != link) continue;
    for (std::size_t pipe = 0; pipe < kPipes; ++pipe) {
      const bool now_stalled = stalled(links_.at(link), to, pipe);
      if (now_stalled == stalled(before, to, pipe)) continue;
      Pipe& p = session.towards[index(to)][pipe];
      ++p.epoch;
      if (now_stalled) continue;
      p.free = p.arrival = queue_.now();
      for (const Item& item : p.flight) {
        schedule(id, to, pipe, item.last ? 0 : wire::kHeaderBytes + item.frame.body.size());
      }
    }
  }
}

}  // namespace motley::sim
