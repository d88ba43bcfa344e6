#pragma once
// What is publicly known to come out wrong on the GPU of a Mac with some versions. A list, not a judgement: what is not
// in it may be wrong as well, which is what probes and second looks are for. Pure.

#include <string>
#include <vector>

namespace motley::machine {

struct KnownFault {
  std::string what, remedy;  // sentences without a full stop; `what` with the address of the public thread
  bool operator==(const KnownFault&) const = default;
};

/// `system` and `build`: as this_system() says, "macOS 26.2" and "25C56". `mlx`: the version of that library; empty
/// where there is none. Nothing on another system.
std::vector<KnownFault> known_faults_of_mps(const std::string& system, const std::string& build,
                                            const std::string& mlx);

}  // namespace motley::machine
