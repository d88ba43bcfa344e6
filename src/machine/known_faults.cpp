#include "machine/known_faults.h"

#include <cctype>
#include <cstdlib>
#include <string_view>

namespace motley::machine {
namespace {

constexpr std::string_view kMac = "macOS ";

struct Version {
  int major = 0, minor = 0;
};

// "26.2.1": 26 and 2. What is no number is 0.
Version version_in(std::string_view text) {
  const std::string numbers(text);
  char* end = nullptr;
  Version found;
  found.major = static_cast<int>(std::strtol(numbers.c_str(), &end, 10));
  if (*end == '.') found.minor = static_cast<int>(std::strtol(end + 1, nullptr, 10));
  return found;
}

// Builds that were not released end in a small letter: "26A5279m".
bool is_beta(const std::string& build) {
  return !build.empty() && std::islower(static_cast<unsigned char>(build.back())) != 0;
}

}  // namespace

std::vector<KnownFault> known_faults_of_mps(const std::string& system, const std::string& build,
                                            const std::string& mlx) {
  std::vector<KnownFault> found;
  if (!system.starts_with(kMac)) return found;
  const Version mac = version_in(std::string_view(system).substr(kMac.size()));
  if ((mac.major == 26 && (mac.minor == 2 || mac.minor == 3)) || (mac.major == 27 && is_beta(build))) {
    found.push_back({"with " + system + (is_beta(build) ? " (beta " + build + ")" : "") +
                         " gradients of expanded tensors come out as zeros or garbage on mps "
                         "(https://github.com/pytorch/pytorch/issues/180201)",
                     "macOS 26.4, which has it right; until then --device cpu"});
  }
  const Version of_mlx = version_in(mlx);
  if (!mlx.empty() && of_mlx.major == 0 && of_mlx.minor < 32) {
    found.push_back({"with MLX " + mlx +
                         " gradients come out wrong on Metal: LayerNorm's bias now and then "
                         "(https://github.com/ml-explore/mlx/issues/3630), grouped convolutions with a stride "
                         "(https://github.com/ml-explore/mlx/pull/3800)",
                     "pip install 'mlx>=0.32'"});
  }
  return found;
}

}  // namespace motley::machine
