#include "bench/diagnosis.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/format.h"

namespace motley::bench {
namespace {

// Of a link's speed Ethernet, IP and TCP leave 94 %; a busy receiver a little less. More than all of it is another
// speed's.
constexpr double kFull = 0.85;
constexpr std::array<double, 7> kSpeeds{10, 100, 1000, 2500, 5000, 10000, 25000};
constexpr double kUsual = 1000;       // what any cable and switch of the last fifteen years can
constexpr double kUnsteadyMs = 10;    // a round trip at home takes one
constexpr double kUnsteadyTimes = 5;  // high over median
constexpr double kQueueMs = 100;      // what waits so long under load is noticed by heartbeats
constexpr double kOneWay = 0.6;       // of the other direction
constexpr double kShared = 0.65;      // of each alone, both at once
constexpr double kBusyCores = 0.9;

std::string in_milliseconds(double value) { return formatted(value < 10 ? "%.1f" : "%.0f", value); }

std::string percent(double part) { return formatted("%.0f %%", 100 * part); }

std::string range(const RoundTrips& trips) {
  return "the round trip varies between " + in_milliseconds(trips.median_ms) + " and " +
         in_milliseconds(trips.high_ms) + " ms";
}

bool varies(const RoundTrips& trips) {
  return trips.high_ms > kUnsteadyMs && trips.high_ms > kUnsteadyTimes * trips.median_ms;
}

/// The speed that such a rate fills; 0: none.
double speed_filled_by(double mbit_s) {
  for (const double speed : kSpeeds) {
    if (mbit_s >= kFull * speed && mbit_s <= speed) return speed;
  }
  return 0;
}

double known_speed(const LinkFigures& f) {
  const double near = f.near.mbit_per_s, far = f.far.mbit_per_s;
  if (near == 0 || far == 0) return std::max(near, far);
  return std::min(near, far);
}

Diagnosis of_wifi(const LinkFigures& f, double least) {
  const std::string where = f.near.kind == InterfaceKind::wifi ? "" : " of the other machine";
  if (varies(f.idle)) return {Verdict::unsteady, "Wi-Fi" + where + ": " + range(f.idle) + ": use a cable", 0};
  const std::string steady = "Wi-Fi" + where + " carries " + rate_text(least) + " at a round trip of " +
                             in_milliseconds(f.idle.median_ms) + " ms";
  if (least >= kFull * kUsual) return {Verdict::wifi, steady + ", as a cable would", 0};
  return {Verdict::wifi, steady + ": a cable carries " + rate_text(0.94 * kUsual), 0};
}

/// What the negotiated speeds give away, whatever was measured.
Diagnosis of_ports(const LinkFigures& f) {
  const bool ours = f.near.mbit_per_s != 0 && f.near.mbit_per_s == known_speed(f);
  const std::string whose = ours ? "this machine" : "the other machine";
  if (f.near.half_duplex || f.far.half_duplex) {
    return {Verdict::half_duplex,
            std::string("the cable or switch of ") + (f.near.half_duplex ? "this machine" : "the other machine") +
                " runs half duplex, one direction at a time: let both ends negotiate, try another cable or port",
            0};
  }
  return {Verdict::slow_port,
          "the cable or switch of " + whose + " runs at " + rate_text(known_speed(f)) + ", not " + rate_text(kUsual) +
              ": try another cable (a damaged one has four wires of eight), then another port",
          0};
}

Diagnosis of_directions(const LinkFigures& f, double up, double down, double link) {
  const bool sending = up < down;
  return {Verdict::one_way,
          std::string(sending ? "sending" : "receiving") + " is slower than " + (sending ? "receiving" : "sending") +
              ", " + rate_text(std::min(up, down)) + " against " + rate_text(std::max(up, down)) +
              ": a damaged cable, other traffic, or a busy " +
              (f.near.kind == InterfaceKind::cable ? "machine" : "link"),
          link > 0 ? std::min(up, down) / link : 0};
}

Diagnosis of_full_link(const LinkFigures& f, double part, double link) {
  const double loaded =
      std::max({f.up.round_trips.median_ms, f.down.round_trips.median_ms, f.both.round_trips.median_ms});
  const std::string good = percent(part) + " of " + rate_text(link);
  if (loaded > f.idle.median_ms + kQueueMs) {
    return {Verdict::queues,
            "the link carries " + good + ", but under load the round trip rises from " +
                in_milliseconds(f.idle.median_ms) + " to " + in_milliseconds(loaded) +
                " ms: a router or switch on the way keeps long queues (bufferbloat)",
            part};
  }
  return {Verdict::good, "the link is good: " + good, part};
}

}  // namespace

const char* to_word(Verdict verdict) noexcept {
  switch (verdict) {
    case Verdict::good:
      return "good";
    case Verdict::loopback:
      return "loopback";
    case Verdict::wifi:
      return "wifi";
    case Verdict::unsteady:
      return "unsteady";
    case Verdict::slow_port:
      return "slow-port";
    case Verdict::slow_path:
      return "slow-path";
    case Verdict::half_duplex:
      return "half-duplex";
    case Verdict::one_way:
      return "one-way";
    case Verdict::processor:
      return "processor";
    case Verdict::queues:
      return "queues";
    case Verdict::less:
      return "less";
    case Verdict::unknown:
      break;
  }
  return "unknown";
}

Diagnosis diagnose(const LinkFigures& f) {
  const double up = f.up.up_mbit_s, down = f.down.down_mbit_s, least = std::min(up, down);
  if (f.near.kind == InterfaceKind::loopback) {
    return {Verdict::loopback,
            "this machine talks to itself at " + rate_text(least) + ": start the same on another one to measure a link",
            0};
  }
  if (f.near.kind == InterfaceKind::wifi || f.far.kind == InterfaceKind::wifi) return of_wifi(f, least);
  const double known = known_speed(f);
  if (f.near.half_duplex || f.far.half_duplex || (known > 0 && known < kUsual)) return of_ports(f);
  if (varies(f.idle)) {
    return {Verdict::unsteady, range(f.idle) + ": Wi-Fi or a powerline adapter on the way, or a busy machine", 0};
  }
  const double filled = speed_filled_by(least);
  const double link = known > 0 ? known : filled;
  if (least < kOneWay * std::max(up, down)) return of_directions(f, up, down, link);
  if (filled > 0 && filled < kUsual) {
    const std::string speed = rate_text(filled) + ", not " + rate_text(std::max(known, kUsual));
    if (known == 0) return {Verdict::slow_path, "the cable or switch runs at " + speed, least / filled};
    return {Verdict::slow_path,
            "both machines have " + rate_text(known) + ", but a switch or cable between them runs at " + speed,
            least / known};
  }
  if (link == 0) {
    return {Verdict::unknown,
            "the link carries " + rate_text(least) + "; at which speed it runs, the system does not say", 0};
  }
  const double part = least / link;
  const double together = std::min(f.both.up_mbit_s / up, f.both.down_mbit_s / down);
  const bool busy = f.both.processor_cores > kBusyCores;
  if (part < kFull || (together < kShared && busy)) {
    const std::string found = "the link carries " + percent(part) + " of " + rate_text(link);
    if (busy) return {Verdict::processor, found + ": this machine's processor is busy with it", part};
    return {Verdict::less, found + ": other traffic, a busy machine or a damaged cable takes the rest", part};
  }
  if (together < kShared) {
    return {Verdict::half_duplex,
            "one direction alone has " + percent(part) + " of " + rate_text(link) + ", both at once " +
                rate_text(f.both.up_mbit_s) + " and " + rate_text(f.both.down_mbit_s) +
                ": something between sends one way at a time (Wi-Fi, powerline, half duplex)",
            part};
  }
  return of_full_link(f, part, link);
}

double step_seconds(const LinkFigures& figures, double bytes) {
  const double least = std::min(figures.both.up_mbit_s, figures.both.down_mbit_s);
  return least > 0 ? bytes * 8 / (least * 1e6) : 0;
}

std::string rate_text(double mbit_s) {
  if (mbit_s < 10) return formatted("%.2g Mbit/s", mbit_s);
  if (mbit_s < 1000) return formatted("%.0f Mbit/s", mbit_s);
  return formatted("%.3g Gbit/s", mbit_s / 1000);
}

RoundTrips summarise(std::vector<double> milliseconds, std::uint64_t lost) {
  RoundTrips result;
  result.samples = milliseconds.size();
  result.lost = lost;
  if (milliseconds.empty()) return result;
  std::sort(milliseconds.begin(), milliseconds.end());
  result.median_ms = milliseconds[milliseconds.size() / 2];
  result.high_ms = milliseconds[milliseconds.size() * 95 / 100];
  result.worst_ms = milliseconds.back();
  return result;
}

}  // namespace motley::bench
