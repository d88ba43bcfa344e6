#pragma once
// Who is connected, and the frames to them: each carries the run's number and the fence of its session. And what is
// remembered of a worker over all its sessions. One thread at a time.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/head/asked.h"
#include "engine/head/coordinator.h"
#include "engine/head/line_budget.h"
#include "modes/action.h"
#include "modes/work/lease.h"
#include "wire/frame.h"
#include "wire/messages.h"

namespace motley::engine {

struct Session {
  SessionId id = 0;
  wire::Hello hello;
  std::string key;  // by which its machine is known; empty: by its name alone
  Locality locality = Locality::network;
  std::uint64_t fence = 0;  // 0: not admitted
  fleet::WorkerId worker = 0;
  std::string name;              // unique among those connected
  std::optional<wire::Bye> bye;  // what to say when it is closed; empty: by the reason of the machine
  std::string why;               // likewise for the display
  bool gone = false;             // the channel is closed, nothing can be sent
  bool said_bye = false;
  std::uint64_t heartbeat_heard_ns = 0;
  Time heartbeat_at{};
  bool computes = false;  // by its newest heartbeat
  struct Sent {
    std::uint64_t version;
    Time at;
    std::uint64_t bytes = 0;
  };
  std::optional<Sent> weights_sent{};  // beside the run, until they are there
  bool weights_due = false;            // it asked again, and what it was sent before is still queued
  // A version of which every chunk is there before what is sent now on the lane of weights.
  std::optional<std::uint64_t> holds{};
  Asked asked{};
  LineBudget lines{};

  [[nodiscard]] bool admitted() const noexcept { return fence != 0; }
  [[nodiscard]] bool local() const noexcept { return locality == Locality::process; }
  [[nodiscard]] bool remote() const noexcept { return locality == Locality::network; }
};

class Sessions {
 public:
  /// REQUIRES output outlives this. `checksums`: of bodies to workers of other machines.
  Sessions(std::uint64_t run, bool checksums, CoordinatorOutput& output)
      : run_(run), checksums_(checksums), output_(output) {}

  /// REQUIRES a session that is new.
  Session& open(SessionId id, const wire::Hello& hello, Locality locality, std::string key);
  /// Forgets it. REQUIRES it is here.
  Session take(SessionId id);
  [[nodiscard]] Session* find(SessionId id) noexcept;
  [[nodiscard]] Session& at(SessionId id) { return sessions_.at(id); }
  [[nodiscard]] const Session& at(SessionId id) const { return sessions_.at(id); }
  /// Whose worker has this name; null: nobody's.
  [[nodiscard]] Session* named(const std::string& name) noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return sessions_.size(); }
  [[nodiscard]] const std::map<SessionId, Session>& all() const noexcept { return sessions_; }

  [[nodiscard]] bool checksums(const Session& to) const noexcept { return checksums_ && to.remote(); }
  void say(const Session& to, const wire::Message& message);
  /// A body under this header, into which the run and the fence come.
  void send(const Session& to, wire::FrameHeader header, SharedBytes body, Lane lane);
  /// A frame that is whole but for its sending. Nothing where the channel is gone.
  void pass_on(const Session& to, wire::Frame frame, Lane lane);
  /// The header of a frame to it.
  [[nodiscard]] wire::FrameHeader header(const Session& to) const noexcept;
  void tell(const Session& of, Membership event, const std::string& reason);

 private:
  std::uint64_t run_;
  bool checksums_;
  CoordinatorOutput& output_;
  std::map<SessionId, Session> sessions_;
};

/// Keeps its number, and what it last did, over all its sessions.
struct KnownWorker {
  std::string name;
  std::string key;
  bool excluded = false;
  bool seen = false;                             // was a member before
  double compute_seconds = 0, wait_seconds = 0;  // of its last finished lease
  double finish_seconds = 0;                     // of its first lease of the pass
  std::optional<wire::Taken> taken{};            // of its newest lease with feedback
};

class KnownWorkers {
 public:
  /// The number of the worker of this name and key, which is new at first. Where a worker of this key was excluded the
  /// machine has no other names than those that it had by then: that worker's number.
  fleet::WorkerId number(const std::string& name, const std::string& key);
  /// The name is that of a machine with another key.
  [[nodiscard]] bool is_of_another(const std::string& name, const std::string& key) const;
  [[nodiscard]] KnownWorker& at(fleet::WorkerId worker) { return workers_[worker - 1]; }
  [[nodiscard]] const KnownWorker& at(fleet::WorkerId worker) const { return workers_[worker - 1]; }
  [[nodiscard]] std::string name(fleet::WorkerId worker) const;
  /// In one sentence, with names in it.
  [[nodiscard]] std::string sentence(const modes::Reason& reason) const;

 private:
  std::vector<KnownWorker> workers_;  // by number - 1
};

}  // namespace motley::engine
