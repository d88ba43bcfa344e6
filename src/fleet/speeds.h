#pragma once
// What is known of how fast workers are, as far as it decides who takes part. Must be a function of what it was told,
// so that a run can be replayed.

#include <cstdint>
#include <span>

#include "base/time.h"
#include "fleet/member.h"

namespace motley::fleet {

struct Verdict {
  bool pays = true;
  Duration with{}, without{};  // of work of `total` samples, where it does not
  bool faster = false;         // its device or its link is faster than when it last had a share
};

class Speeds {
 public:
  virtual ~Speeds() = default;
  /// Samples of the next calibration of `worker`; 0: enough is known of its speed.
  [[nodiscard]] virtual std::uint64_t calibration(WorkerId worker) const = 0;
  /// Samples by which a parked `worker` is measured again.
  [[nodiscard]] virtual std::uint64_t trial(WorkerId worker) const = 0;
  /// Whether `total` samples are done sooner when `worker` joins `members`.
  [[nodiscard]] virtual Verdict judge(std::uint64_t total, std::span<const WorkerId> members, WorkerId worker) = 0;
  /// Whether `total` samples were done sooner lately than `worker`, which had a share in them, did them alone. What
  /// does not pay and has no times: what it gains by the others is in doubt, and some steps alone would tell.
  [[nodiscard]] virtual Verdict compare(std::uint64_t total, WorkerId worker) = 0;
  /// Once some worker was alone because of that doubt: whether the others are of use, as far as is known by now.
  [[nodiscard]] virtual Verdict resolve(std::uint64_t total) = 0;
};

}  // namespace motley::fleet
