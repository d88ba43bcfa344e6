#include "engine/head/sessions.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace motley::engine {

Session& Sessions::open(SessionId id, const wire::Hello& hello, Locality locality, std::string key) {
  const auto [at, fresh] = sessions_.try_emplace(id);
  MOTLEY_ASSERT(fresh);
  Session& session = at->second;
  session.id = id;
  session.hello = hello;
  session.key = std::move(key);
  session.locality = locality;
  session.name = hello.name;
  return session;
}

Session Sessions::take(SessionId id) {
  const auto at = sessions_.find(id);
  MOTLEY_ASSERT(at != sessions_.end());
  Session session = std::move(at->second);
  sessions_.erase(at);
  return session;
}

Session* Sessions::find(SessionId id) noexcept {
  const auto at = sessions_.find(id);
  return at == sessions_.end() ? nullptr : &at->second;
}

Session* Sessions::named(const std::string& name) noexcept {
  const auto at = std::ranges::find_if(
      sessions_, [&](const auto& entry) { return entry.second.worker != 0 && entry.second.name == name; });
  return at == sessions_.end() ? nullptr : &at->second;
}

wire::FrameHeader Sessions::header(const Session& to) const noexcept {
  wire::FrameHeader header;
  header.run = run_;
  header.fence = to.fence;
  return header;
}

void Sessions::say(const Session& to, const wire::Message& message) {
  if (to.gone) return;
  wire::FrameHeader control;
  control.type = wire::FrameType::control;
  send(to, control, wire::encode(message), Lane::control);
}

void Sessions::send(const Session& to, wire::FrameHeader header, SharedBytes body, Lane lane) {
  if (to.gone) return;
  header.run = run_;
  header.fence = to.fence;
  output_.send(to.id, wire::seal(header, std::move(body), checksums(to)), lane);
}

void Sessions::pass_on(const Session& to, wire::Frame frame, Lane lane) {
  if (!to.gone) output_.send(to.id, std::move(frame), lane);
}

void Sessions::tell(const Session& of, Membership event, const std::string& reason) {
  output_.worker_changed({.session = of.id,
                          .worker = of.worker,
                          .name = of.name,
                          .machine = of.hello.machine,
                          .device = of.hello.device,
                          .description = of.hello.device_description,
                          .event = event,
                          .reason = reason});
}

fleet::WorkerId KnownWorkers::number(const std::string& name, const std::string& key) {
  const auto known = std::ranges::find(workers_, name, &KnownWorker::name);
  if (known != workers_.end()) {
    if (known->key.empty()) known->key = key;
    return static_cast<fleet::WorkerId>(known - workers_.begin()) + 1;
  }
  const auto struck_out = std::ranges::find_if(
      workers_, [&](const KnownWorker& worker) { return worker.excluded && !key.empty() && worker.key == key; });
  if (struck_out != workers_.end()) return static_cast<fleet::WorkerId>(struck_out - workers_.begin()) + 1;
  workers_.push_back({.name = name, .key = key});
  return workers_.size();
}

bool KnownWorkers::is_of_another(const std::string& name, const std::string& key) const {
  const auto known = std::ranges::find(workers_, name, &KnownWorker::name);
  return known != workers_.end() && !known->key.empty() && known->key != key;
}

std::string KnownWorkers::name(fleet::WorkerId worker) const {
  return worker == 0 || worker > workers_.size() ? std::string("a worker") : workers_[worker - 1].name;
}

std::string KnownWorkers::sentence(const modes::Reason& reason) const {
  return modes::sentence(reason, [this](fleet::WorkerId worker) { return name(worker); });
}

}  // namespace motley::engine
