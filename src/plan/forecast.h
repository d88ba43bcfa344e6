#pragma once
// What steps to come will take, by the models. Pure.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plan/advice.h"
#include "plan/planner.h"
#include "plan/step_overhead.h"

namespace motley::plan {

/// A worker all of whose times are known.
struct MeasuredWorker {
  Candidate candidate;
  Affine compute;                         // of its device alone
  double exposed_seconds = 0;             // of a pass, beyond that
  std::optional<double> alone_seconds{};  // of a step that it makes by itself, if it does
  std::string codec{};
  std::optional<double> up_bytes_per_second{}, down_bytes_per_second{};

  /// Its part is computed in so many steps more.
  void add_steps(std::uint64_t more) noexcept;
};

struct Forecast {
  StepOutlook step;
  std::vector<Outlook> workers;  // members, then parked ones, without names
};

struct ForecastInput {
  Request request;  // of a pass by the members
  std::span<const MeasuredWorker> members;
  std::span<const MeasuredWorker> parked;  // have no share
  double link_seconds = 0;                 // likewise as request.link_seconds, of all of them
};

/// `passes`: so many were made with the same workers. REQUIRES members not empty, and that all of them are measured.
Forecast forecast(const ForecastInput& input, const StepOverhead& step_overhead, std::uint32_t passes);

/// Samples a step could have held in the time that does not depend on its size, where the passes of those who have a
/// share take so long and the update at the end, which holds up everybody, `update_seconds`: with it a pass takes
/// T = (B + lost) / sum(1 / per_sample).
[[nodiscard]] double lost_samples(std::span<const Affine> passes, double update_seconds) noexcept;

}  // namespace motley::plan
