#pragma once
// A chunk's arithmetic in pieces, which helpers may take. The bits are those of one piece. Private to ps.

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>

#include "ps/kernels.h"
#include "ps/parallel.h"

namespace motley::ps {

struct Stretches {
  std::shared_ptr<Parallel> helpers{};  // none: the caller's thread does all

  /// Calls work(first, count) for stretches of the elements that together are all of them, each of whole blocks.
  template <class Work>
  void each(std::size_t elements, Work&& work) const {
    constexpr std::size_t kStretch = 16 * kBlock;  // 256 KiB: some 50 us, many times what it takes to hand one out
    if (!helpers || elements <= kStretch) return work(std::size_t{0}, elements);
    const auto piece = [&](std::size_t i) { work(i * kStretch, std::min(kStretch, elements - i * kStretch)); };
    helpers->each((elements + kStretch - 1) / kStretch, std::ref(piece));
  }
};

}  // namespace motley::ps
