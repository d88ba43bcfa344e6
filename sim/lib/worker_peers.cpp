// The part of WorkerNode that deals with other workers.

#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "base/xxh64.h"
#include "sim/worker_node.h"

namespace motley::sim {

wire::BodyHash short_hash(std::span<const std::byte> bytes) {
  wire::BodyHash hash{};
  const std::uint64_t number = xxh64(bytes);
  for (std::size_t i = 0; i < sizeof number; ++i) hash[i] = static_cast<std::uint8_t>(number >> (8 * i));
  return hash;
}

void WorkerNode::let_in(const wire::Guest& guest) {
  if (!guest.secret.empty()) {
    guests_.try_emplace(guest.id, 0);
    return worker_->opened(
        {.id = guest.id, .port = static_cast<std::uint32_t>(index_), .addresses = {}, .secret = {}, .spki = {}});
  }
  const auto found = guests_.find(guest.id);
  if (found == guests_.end()) return;
  if (found->second != 0) world_.network.close(found->second, Side::head);
  guests_.erase(found);
}

bool WorkerNode::come(std::uint64_t guest, std::size_t link, Network::End end, Network::SessionId& session) {
  const auto found = guests_.find(guest);
  if (!process_.alive() || process_.frozen() || found == guests_.end() || !world_.network.reachable(index_))
    return false;
  Network::End mine;
  mine.frame = [this, guest](wire::Frame frame, engine::Lane) {
    process_.run([this, guest, frame = std::move(frame)] {
      if (guests_.contains(guest)) worker_->from_guest(guest, frame, process_.now());
    });
  };
  mine.closed = [this, guest](const std::string&) {
    process_.run([this, guest] {
      if (const auto gone = guests_.find(guest); gone != guests_.end()) gone->second = 0;
    });
  };
  session = found->second = world_.network.open(link, std::move(end), std::move(mine));
  return true;
}

void WorkerNode::follow(const wire::Source& source) {
  unfollow(source_);
  const std::uint64_t id = source_ = source.id;
  const Duration handshake = world_.network.round_trip(index_) + world_.network.round_trip(index_);
  process_.later(handshake, [this, id, from = source.port] {
    if (session_ == 0 || source_ != id) return;
    Network::End end;
    end.frame = [this, id](wire::Frame frame, engine::Lane) {
      process_.run([this, id, frame = std::move(frame)] { worker_->from_source(id, frame, process_.now()); });
    };
    end.closed = [this, id](const std::string&) { process_.run([this, id] { worker_->source_lost(id); }); };
    if (!world_.network.reachable(index_) || !world_.workers[from]->come(id, index_, std::move(end), source_session_))
      return worker_->source_lost(id);
    note("follows", from);
    worker_->follows(id, process_.now());
  });
}

void WorkerNode::unfollow(std::uint64_t id) {
  if (id == 0 || id != source_) return;
  if (source_session_ != 0) world_.network.close(source_session_, Side::worker);
  source_ = source_session_ = 0;
}

void WorkerNode::hand_on(const wire::Frame& frame) {
  for (const auto& [id, session] : guests_) {
    if (session == 0) continue;
    ++world_.handed_on;
    wire::Frame sent = frame;
    if (world_.scenario.chain_damaged > 0 && damage_.uniform() < world_.scenario.chain_damaged) {
      std::vector<std::byte> bytes(frame.body.bytes().begin(), frame.body.bytes().end());
      bytes[damage_.below(bytes.size())] ^= std::byte{4};
      sent.body = SharedBytes::copy_of(bytes);
    }
    world_.network.send(session, Side::head, std::move(sent), engine::Lane::weights);
  }
}

// What is damaged shows: with other numbers of a usual size it would be one that lies, as in what is its own.
void WorkerNode::hand_up(std::uint64_t source, const wire::Frame& frame) {
  if (source != source_ || source_session_ == 0) return;
  wire::Frame sent = frame;
  if (!mouth_.changes(sent)) return;
  if (world_.scenario.chain_damaged > 0 && damage_.uniform() < world_.scenario.chain_damaged) {
    std::vector<float> values(frame.body.floats().begin(), frame.body.floats().end());
    // Other codes are numbers of a usual size.
    switch (damage_.below(frame.header.codec == wire::CodecId::fp32 ? 4 : 3)) {
      case 0:
        return;
      case 1:
        ++sent.header.subject;
        break;
      case 2:
        values.pop_back();
        if (values.empty()) return;
        break;
      default:
        values[damage_.below(values.size())] = std::numeric_limits<float>::quiet_NaN();
    }
    sent = wire::seal(sent.header, SharedBytes::copy_of(std::as_bytes(std::span(values))));
  }
  world_.network.send(source_session_, Side::worker, std::move(sent), engine::Lane::gradients);
}

void WorkerNode::hang_up(bool silent) {
  const auto end = [&](Network::SessionId session, Side side) {
    if (session == 0) return;
    if (silent) {
      world_.network.vanish(session, side);
    } else {
      world_.network.close(session, side);
    }
  };
  for (const auto& [id, session] : guests_) end(session, Side::head);
  guests_.clear();
  end(source_session_, Side::worker);
  source_ = source_session_ = 0;
}

}  // namespace motley::sim
