#pragma once
// What the numbers of a link mean, in one sentence. Pure functions; any thread.

#include <cstdint>
#include <string>
#include <vector>

#include "transport/interface.h"

namespace motley::bench {

using transport::Interface;
using transport::InterfaceKind;

struct RoundTrips {
  double median_ms = 0, worst_ms = 0;
  double high_ms = 0;  // 95 of 100 are below: one turn that a busy machine lost is no fault of a link
  std::uint64_t samples = 0;
  std::uint64_t lost = 0;  // not back when the phase was over
};

/// `up`: from this machine to the other. Bits of payload.
struct Phase {
  double up_mbit_s = 0, down_mbit_s = 0;  // 0: nothing was sent that way
  double processor_cores = 0;             // that this machine's program was busy on
  RoundTrips round_trips;
};

struct LinkFigures {
  Interface near, far;  // this machine's and the other's
  RoundTrips idle;
  Phase up, down, both;
};

enum class Verdict : std::uint8_t {
  good,
  loopback,     // no link at all
  wifi,         // as good as Wi-Fi gets
  unsteady,     // the round trip varies
  slow_port,    // an interface runs slower than 1 Gbit/s
  slow_path,    // something between runs slower than both interfaces
  half_duplex,  // both directions share what one has
  one_way,      // one direction is much slower than the other
  processor,    // the link would carry more
  queues,       // good, but what goes under load waits
  less,         // less than the link's speed, and nothing says why
  unknown,      // its speed is not known
};

const char* to_word(Verdict verdict) noexcept;

struct Diagnosis {
  Verdict verdict = Verdict::unknown;
  std::string sentence;
  double of_link = 0;  // the slower direction over the link's speed; 0: not known
};

Diagnosis diagnose(const LinkFigures& figures);

/// How long a step takes at least that sends so many bytes up and as many down, at once; 0: not known.
double step_seconds(const LinkFigures& figures, double bytes);

/// "940 Mbit/s", "1 Gbit/s", "2.5 Gbit/s"
std::string rate_text(double mbit_s);

/// Sorts and sums up. REQUIRES nothing; of no round trips all is zero.
RoundTrips summarise(std::vector<double> milliseconds, std::uint64_t lost);

}  // namespace motley::bench
