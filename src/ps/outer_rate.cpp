#include "ps/outer_rate.h"

#include <array>

#include "base/assert.h"

namespace motley::ps {
namespace {

struct Known {
  std::size_t workers;
  double rate;
};
constexpr std::array<Known, 4> kKnown{{{1, 0.4}, {2, 0.6}, {4, 0.6}, {8, 0.8}}};

}  // namespace

double outer_rate(std::size_t workers) {
  MOTLEY_ASSERT(workers > 0);
  for (std::size_t i = 1; i < kKnown.size(); ++i) {
    const Known from = kKnown[i - 1], to = kKnown[i];
    if (workers >= to.workers) continue;
    const double part = static_cast<double>(workers - from.workers) / static_cast<double>(to.workers - from.workers);
    return from.rate + part * (to.rate - from.rate);
  }
  return kKnown.back().rate;
}

}  // namespace motley::ps
