#pragma once
// What a lease may ask of a worker, whatever the coordinator says: positions of the data that is here, numbers that
// this program knows. Functions without state; any thread.

#include <cstdint>

#include "motley/result.h"
#include "wire/messages.h"

namespace motley::engine {

/// How many samples there are to ask for.
struct SampleCounts {
  std::uint64_t train = 0, test = 0;
};

/// ErrorCode::protocol for a lease that cannot be computed with these samples.
Status check_grant(const wire::Grant& grant, const SampleCounts& samples);

}  // namespace motley::engine
