#include "machine/processor.h"

#include <algorithm>
#include <fstream>
#include <string>

#ifdef __linux__
#include "machine/control_groups.h"
#endif

namespace motley::machine {
namespace {

constexpr double kLeast = 0.01;

#ifdef __linux__
/// Of a period; no limit where the files are not there or say "max" or -1.
double quota_of(const std::filesystem::path& group, bool version1, double most) {
  double quota = 0, period = 0;
  if (version1) {
    std::ifstream(group / "cpu.cfs_quota_us") >> quota;
    std::ifstream(group / "cpu.cfs_period_us") >> period;
  } else {
    std::ifstream(group / "cpu.max") >> quota >> period;
  }
  return quota > 0 && period > 0 ? std::min(most, quota / period) : most;
}
#endif

}  // namespace

double usable_processors([[maybe_unused]] const std::filesystem::path& root) {
  double processors = allowed_processors();
#ifdef __linux__
  visit_control_groups(root, "cpu", [&](const std::filesystem::path& group, bool version1) {
    processors = quota_of(group, version1, processors);
  });
#endif
  return std::max(kLeast, processors);
}

}  // namespace motley::machine
