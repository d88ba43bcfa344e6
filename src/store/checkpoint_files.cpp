#include "store/checkpoint_files.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "base/assert.h"
#include "store/file.h"

namespace motley::store {
namespace {

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kAside = ".old-";  // .step-N.old-PID: replaced by a newer one of the same step

}  // namespace

std::filesystem::path checkpoints_of(const std::filesystem::path& run_dir) { return run_dir / "checkpoints"; }

std::string checkpoint_name(std::uint64_t step) {
  std::string digits = std::to_string(step);
  if (digits.size() < 9) digits.insert(0, 9 - digits.size(), '0');
  return std::string(kPrefix) + digits;
}

std::optional<std::uint64_t> checkpoint_step(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  std::uint64_t step = 0;
  const auto parsed = std::from_chars(name.data(), name.data() + name.size(), step);
  if (parsed.ec != std::errc() || parsed.ptr != name.data() + name.size()) return std::nullopt;
  if (checkpoint_name(step).substr(kPrefix.size()) != name) return std::nullopt;
  return step;
}

std::vector<std::uint64_t> checkpoint_steps(const std::filesystem::path& checkpoints) {
  std::vector<std::uint64_t> steps;
  std::error_code failure;
  for (auto entry = std::filesystem::directory_iterator(checkpoints, failure);
       !failure && entry != std::filesystem::directory_iterator(); entry.increment(failure)) {
    if (const auto step = checkpoint_step(entry->path().filename().string())) steps.push_back(*step);
  }
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

void clean_checkpoints(const std::filesystem::path& checkpoints) {
  std::vector<std::filesystem::path> aside;
  std::error_code failure;
  for (auto entry = std::filesystem::directory_iterator(checkpoints, failure);
       !failure && entry != std::filesystem::directory_iterator(); entry.increment(failure)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with('.') && name.find(kAside) != std::string::npos) aside.push_back(entry->path());
  }
  for (const auto& path : aside) {
    const std::string name = path.filename().string();
    const auto original = checkpoints / name.substr(1, name.find(kAside) - 1);
    std::error_code ignored;
    if (!std::filesystem::exists(original, ignored)) std::filesystem::rename(path, original, ignored);
  }
  remove_leftovers(checkpoints, kPrefix, kAside);
  remove_leftovers(checkpoints, kPrefix, ".tmp-");
  remove_leftovers(checkpoints, kLatestFile, ".tmp-");
}

std::vector<Piece> pieces_of(const Layout& layout, const Placement& placement) {
  const auto chunks = layout.chunks();
  auto chunk = std::upper_bound(chunks.begin(), chunks.end(), placement.offset,
                                [](std::uint64_t offset, const Chunk& c) { return offset < c.offset; });
  MOTLEY_ASSERT(chunk != chunks.begin());
  --chunk;
  std::vector<Piece> pieces;
  std::uint64_t at = placement.offset;
  const std::uint64_t end = placement.offset + placement.elements;
  for (; at < end; ++chunk) {
    MOTLEY_ASSERT(chunk != chunks.end() && chunk->offset <= at && at < chunk->offset + chunk->elements);
    const std::uint64_t stop = std::min<std::uint64_t>(end, chunk->offset + chunk->elements);
    pieces.push_back({static_cast<std::size_t>(chunk - chunks.begin()),
                      static_cast<std::size_t>((at - chunk->offset) * sizeof(float)),
                      static_cast<std::size_t>((stop - at) * sizeof(float))});
    at = stop;
  }
  return pieces;
}

std::map<std::string, std::size_t, std::less<>> entries_by_name(const Layout& layout) {
  std::map<std::string, std::size_t, std::less<>> by_name;
  for (std::size_t i = 0; i < layout.entries().size(); ++i) by_name.emplace(layout.entries()[i].name, i);
  return by_name;
}

std::optional<std::size_t> resolve_alias(const Layout& layout, std::size_t entry,
                                         const std::map<std::string, std::size_t, std::less<>>& by_name) {
  for (std::size_t hops = 0; hops <= layout.entries().size(); ++hops) {
    if (layout.entries()[entry].kind != TensorKind::alias) return entry;
    const auto target = by_name.find(layout.entries()[entry].alias_of);
    if (target == by_name.end()) return std::nullopt;
    entry = target->second;
  }
  return std::nullopt;
}

}  // namespace motley::store
