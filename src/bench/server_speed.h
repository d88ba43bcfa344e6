#pragma once
// A step of the parameter server: contributions are summed and divided, the norm is clipped, AdamW applied. One thread
// calls; others help it, as in a run.

#include <cstdint>

#include "codec/codec.h"
#include "motley/result.h"
#include "runtime/stop.h"

namespace motley::bench {

struct ServerOptions {
  std::uint64_t parameters = 16'000'000;
  std::uint32_t contributions = 2;
  codec::CodecId codec = codec::CodecId::fp32;  // of the contributions
  bool clips = true;
  std::uint32_t threads = 1;
  std::uint32_t steps = 5;  // after one that warms up
};

struct ServerReport {
  std::uint64_t parameters = 0, chunks = 0;
  double step_ms = 0;              // median
  double touched_gb_s = 0;         // what a step reads and writes in memory
  double memcpy_touched_gb_s = 0;  // of as many threads together
  double bytes_per_parameter = 0;  // of memory at its highest, without the contributions; 0: not known
};

/// Errors: interrupted, memory, input.
Result<ServerReport> measure_server(const ServerOptions& options, const runtime::StopSource& stop);

}  // namespace motley::bench
