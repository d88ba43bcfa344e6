#pragma once
// What the worker's machine is told: what became of the channel, of weights and of the task that runs, and the messages
// of the coordinator that concern leases and versions. Values.

#include <cstdint>
#include <variant>

#include "wire/messages.h"

namespace motley::cluster {

namespace worker_event {
struct Connected {};
struct Disconnected {};
struct Heard {  // a frame of this session, or a part of one, before its content is looked at
  bool weights = false;
};
struct SpecWhole {};  // RunSpec and what follows it are there
struct Prepared {};
struct PrepareFailed {};
struct DeviceOut {};  // it computes no more
struct Admitted {};
struct VersionSeen {  // the first segment of a version
  std::uint64_t version = 0;
};
struct WeightsForgotten {};  // what came before admission was of another session
struct VersionWhole {
  std::uint64_t version = 0;
};
struct WeightsDiffer {  // what a version came to is not what the coordinator holds
  std::uint64_t version = 0;
};
struct TaskProgress {
  std::uint64_t number = 0, done = 0;
};
struct TaskLimited {  // what became of limit_task
  std::uint64_t number = 0, count = 0;
};
struct TaskBegun {
  std::uint64_t number = 0, count = 0;
};
struct TaskFinished {
  std::uint64_t number = 0, count = 0;
};
struct TaskFailed {
  std::uint64_t number = 0;
};
struct LeaveAsked {
  bool for_good = true;  // else the session alone ends
};
struct Malformed {};  // bytes that make no sense
struct Tick {};
}  // namespace worker_event

using WorkerEvent =
    std::variant<worker_event::Connected, worker_event::Disconnected, worker_event::Heard, worker_event::SpecWhole,
                 worker_event::Prepared, worker_event::PrepareFailed, worker_event::DeviceOut, worker_event::Admitted,
                 worker_event::VersionSeen, worker_event::WeightsForgotten, worker_event::VersionWhole,
                 worker_event::WeightsDiffer, worker_event::TaskProgress, worker_event::TaskLimited,
                 worker_event::TaskBegun, worker_event::TaskFinished, worker_event::TaskFailed,
                 worker_event::LeaveAsked, worker_event::Malformed, worker_event::Tick, wire::PassOpened,
                 wire::PassClosed, wire::Grant, wire::Trim, wire::Cancel, wire::Bye>;

}  // namespace motley::cluster
