#pragma once
// What came out of probes (compute/probe.h), by worker, and what people are told of two that differ. One thread at a
// time.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "fleet/member.h"
#include "modes/event.h"
#include "motley/layout.h"

namespace motley::engine {

/// As they travel: float32, little-endian.
std::vector<std::uint8_t> probe_bytes(std::span<const float> numbers);

class Probes {
 public:
  /// False: it says nothing of the device, and is not kept.
  bool keep(fleet::WorkerId worker, std::span<const std::uint8_t> bytes, const Layout& layout);
  struct Compared {
    modes::ProbeVerdict verdict = modes::ProbeVerdict::alike;
    std::string
        text;  // of a difference: after "<worker> makes another gradient than <reference>"; empty: there is none
  };
  /// REQUIRES both are kept.
  [[nodiscard]] Compared compare(fleet::WorkerId worker, fleet::WorkerId reference, const Layout& layout) const;

 private:
  std::map<fleet::WorkerId, std::vector<float>> kept_;
};

}  // namespace motley::engine
