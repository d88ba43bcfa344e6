#pragma once
// Frames over loopback, plain and TLS, one and two connections, one way and both, beside what blocking calls move in
// the same run. One thread calls; it starts others and joins them.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/meter.h"
#include "motley/result.h"
#include "runtime/stop.h"

namespace motley::bench {

struct WireOptions {
  std::uint64_t megabytes = 512;  // each way, over all connections
  std::uint32_t rounds = 3;
  std::uint32_t io_threads = 1;  // of the transport, on each side
  std::vector<std::uint32_t> connections{1, 2};
};

struct WireRow {
  bool encrypted = false;
  bool both_ways = false;
  std::uint32_t connections = 1;
  Speed motley, raw;  // medians of the rounds; both ways: the sum
  double best_gb_per_s = 0;
  double over_raw = 0;  // median of the ratios of neighbours
};

/// Raw TLS uses one connection each way where it goes both ways: an SSL of OpenSSL serves one thread at a time.
/// Errors: interrupted; network, io (loopback does not work).
Result<std::vector<WireRow>> measure_wire(const WireOptions& options, const runtime::StopSource& stop);

}  // namespace motley::bench
