#include "tensor/flat_chunks.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <system_error>
#include <thread>

#include "base/assert.h"

namespace motley {
namespace {

// Fewer are copied sooner than threads are started.
constexpr std::size_t kSharedElementsMin = std::size_t{1} << 24;
constexpr unsigned kThreadsMax = 4;  // more gain little: what they wait for is memory

// copy(chunk) for all, by several threads where that is much.
template <class Copy>
void for_all_chunks(const Layout& layout, const Copy& copy) {
  const std::size_t count = layout.chunks().size();
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t chunk = next++; chunk < count; chunk = next++) copy(static_cast<ChunkId>(chunk));
  };
  std::vector<std::future<void>> others;
  if (layout.flat_elements() >= kSharedElementsMin) {
    for (unsigned more = std::min(kThreadsMax, std::thread::hardware_concurrency()); more > 1; --more) {
      try {
        others.push_back(std::async(std::launch::async, work));
      } catch (const std::system_error&) {
        break;  // no more threads: those that there are do it
      }
    }
  }
  work();
  for (std::future<void>& other : others) other.get();
}

}  // namespace

void put_chunks(const Layout& layout, std::span<const SharedBytes> chunks, std::span<float> flat) {
  MOTLEY_ASSERT(chunks.size() == layout.chunks().size() && flat.size() == layout.flat_elements());
  for_all_chunks(layout, [&](ChunkId chunk) {
    const Chunk& place = layout.chunks()[chunk];
    const std::span<float> to = flat.subspan(place.offset, place.elements);
    if (chunks[chunk].empty()) {
      std::ranges::fill(to, 0.0F);
      return;
    }
    MOTLEY_ASSERT(chunks[chunk].size() == to.size_bytes());
    std::ranges::copy(chunks[chunk].bytes(), std::as_writable_bytes(to).begin());
  });
}

std::vector<SharedBytes> copy_chunks(const Layout& layout, std::span<const float> flat, bool statistics) {
  MOTLEY_ASSERT(flat.size() == layout.flat_elements());
  std::vector<SharedBytes> chunks(layout.chunks().size());
  for_all_chunks(layout, [&](ChunkId chunk) {
    const Chunk& place = layout.chunks()[chunk];
    if (!statistics && place.kind == ChunkKind::statistics) return;
    chunks[chunk] = SharedBytes::copy_of(std::as_bytes(flat.subspan(place.offset, place.elements)));
  });
  return chunks;
}

}  // namespace motley
