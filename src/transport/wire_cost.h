#pragma once
// What a byte on a connection costs this machine's processor. Any thread.

namespace motley::transport {

/// Seconds of one processor.
struct WireCost {
  double sent = 0, received = 0;  // a byte
};

/// Sends itself a few megabytes over loopback, sealed and opened if `encrypted`, which takes some milliseconds.
/// `processor_seconds`: of the calling thread, so far. Zero where there is no loopback, but for the encryption.
WireCost measure_wire_cost(bool encrypted, double (*processor_seconds)());

}  // namespace motley::transport
