#include "motley/layout.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "base/assert.h"

namespace motley {
namespace {

constexpr float kCountMax = 1 << 20;  // of a counter, a step
constexpr std::uint64_t kStatisticsBytesMax = 16 << 20;
// How finely the large region is cut where the limits allow: enough pieces to overlap wire and arithmetic.
constexpr std::uint64_t kChunksAimed = 64;

static_assert(Layout::kChunkBytesMin % (Layout::kAlignElements * sizeof(float)) == 0);
static_assert(Layout::kChunkBytesMax % (Layout::kAlignElements * sizeof(float)) == 0);

constexpr std::uint64_t align_up(std::uint64_t value, std::uint64_t grain) noexcept {
  return (value + grain - 1) / grain * grain;
}

Error input_error(std::string message, std::string hint) {
  return Error{ErrorCode::input, std::move(message), std::move(hint)};
}

std::string_view word(DType dtype) noexcept {
  switch (dtype) {
    case DType::f32:
      return "f32";
    case DType::f16:
      return "f16";
    case DType::bf16:
      return "bf16";
    case DType::f64:
      return "f64";
    case DType::i64:
      return "i64";
    case DType::i32:
      return "i32";
    case DType::u8:
      return "u8";
    case DType::boolean:
      return "boolean";
  }
  return "unknown";
}

std::string_view word(TensorKind kind) noexcept {
  switch (kind) {
    case TensorKind::trained:
      return "trained";
    case TensorKind::frozen:
      return "frozen";
    case TensorKind::running_mean:
      return "running_mean";
    case TensorKind::running_var:
      return "running_var";
    case TensorKind::counter:
      return "counter";
    case TensorKind::alias:
      return "alias";
  }
  return "unknown";
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

/// Empty when a size is negative or the product passes `limit`.
std::optional<std::uint64_t> checked_elements(const std::vector<std::int64_t>& shape, std::uint64_t limit) noexcept {
  // A zero anywhere makes the product zero, however large the other sizes are.
  bool zero = false;
  for (const std::int64_t size : shape) {
    if (size < 0) return std::nullopt;
    zero = zero || size == 0;
  }
  if (zero) return 0;
  std::uint64_t product = 1;
  for (const std::int64_t size : shape) {
    if (static_cast<std::uint64_t>(size) > limit / product) return std::nullopt;
    product *= static_cast<std::uint64_t>(size);
  }
  return product;
}

bool on_the_wire(TensorKind kind) noexcept {
  return kind == TensorKind::trained || kind == TensorKind::running_mean || kind == TensorKind::running_var;
}

Status check_entry(const LayoutEntry& entry) {
  const auto quoted = "'" + entry.name + "'";
  if (entry.name.empty()) return input_error("a tensor has no name, expected its state_dict name", "name every tensor");
  if (word(entry.dtype) == "unknown" || word(entry.kind) == "unknown") {
    return input_error("tensor " + quoted + " has an unknown dtype or kind", "use the same version on all machines");
  }
  const auto elements = checked_elements(entry.shape, Layout::kElementsMax);
  if (!elements) {
    return input_error("tensor " + quoted + " has shape " + shape_text(entry.shape) +
                           ", expected sizes >= 0 with at most " + std::to_string(Layout::kElementsMax) + " elements",
                       "check the model's definition");
  }
  const bool whole = entry.momentum >= 0 && entry.momentum <= kCountMax && std::floor(entry.momentum) == entry.momentum;
  if (entry.kind == TensorKind::counter && !whole) {
    return input_error("counter " + quoted + " counts " + std::to_string(entry.momentum) +
                           " a step, expected a whole number up to " + std::to_string(static_cast<int>(kCountMax)),
                       "use the same version on all machines");
  }
  if (!on_the_wire(entry.kind)) return {};
  if (entry.dtype != DType::f32) {
    return input_error("tensor " + quoted + " is " + std::string(word(entry.dtype)) + ", expected f32 for a " +
                           std::string(word(entry.kind)) + " tensor",
                       "convert the model with .float(), or freeze the tensor with requires_grad_(False)");
  }
  if (*elements == 0) {
    return input_error(
        "tensor " + quoted + " of kind " + std::string(word(entry.kind)) + " has no elements, expected at least one",
        "remove it from the model, or freeze it with requires_grad_(False)");
  }
  // Written so that NaN fails as well.
  const bool in_range = entry.momentum >= 0 && entry.momentum <= 1;
  if (entry.kind != TensorKind::trained && !in_range) {
    return input_error("tensor " + quoted + " has moving-average momentum " + std::to_string(entry.momentum) +
                           ", expected a number from 0 to 1",
                       "set BatchNorm's momentum, for example to 0.1");
  }
  return {};
}

Status check_pairs(const std::vector<LayoutEntry>& entries) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const LayoutEntry& entry = entries[i];
    if (entry.kind == TensorKind::running_mean) {
      const bool paired = i + 1 < entries.size() && entries[i + 1].kind == TensorKind::running_var &&
                          entries[i + 1].shape == entry.shape && entries[i + 1].momentum == entry.momentum;
      if (!paired) {
        return input_error(
            "running_mean '" + entry.name + "' is not followed by a running_var of the same shape and momentum",
            "list the two statistics of a BatchNorm layer one after the other");
      }
    }
    if (entry.kind == TensorKind::running_var && (i == 0 || entries[i - 1].kind != TensorKind::running_mean)) {
      return input_error("running_var '" + entry.name + "' does not follow its running_mean",
                         "list the two statistics of a BatchNorm layer one after the other");
    }
  }
  return {};
}

Status check_entries(const std::vector<LayoutEntry>& entries) {
  if (entries.size() > Layout::kEntriesMax) {
    return input_error("the model has " + std::to_string(entries.size()) + " tensors, expected at most " +
                           std::to_string(Layout::kEntriesMax),
                       "merge small tensors");
  }
  std::unordered_map<std::string_view, TensorKind> kinds;
  for (const LayoutEntry& entry : entries) {
    if (auto status = check_entry(entry); !status) return status;
    if (!kinds.emplace(entry.name, entry.kind).second) {
      return input_error("the name '" + entry.name + "' is used by two tensors, expected distinct names",
                         "rename one, or list a tied tensor as alias");
    }
  }
  for (const LayoutEntry& entry : entries) {
    if (entry.kind != TensorKind::alias) continue;
    const auto found = kinds.find(entry.alias_of);
    if (found == kinds.end() || found->second == TensorKind::alias) {
      return input_error("alias '" + entry.name + "' points to '" + entry.alias_of +
                             "', expected the name of a tensor that is no alias itself",
                         "point it to the tensor that holds the values");
    }
  }
  return check_pairs(entries);
}

ChunkKind region_of(const LayoutEntry& entry) noexcept {
  if (entry.kind != TensorKind::trained) return ChunkKind::statistics;
  return entry.elements() >= Layout::kSmallTensorElements ? ChunkKind::large : ChunkKind::small;
}

void cut(std::vector<Chunk>& chunks, std::uint64_t first, std::uint64_t last, std::uint64_t step, ChunkKind kind) {
  for (std::uint64_t offset = first; offset < last; offset += step) {
    chunks.push_back({offset, static_cast<std::uint32_t>(std::min(step, last - offset)), kind});
  }
}

/// Empty when equal.
std::string entry_difference(const LayoutEntry& here, const LayoutEntry& there) {
  const auto both = [&here](const std::string& what, const std::string& a, const std::string& b) {
    return here.name + ": " + what + a + " here, " + what + b + " there";
  };
  if (here.shape != there.shape) return both("", shape_text(here.shape), shape_text(there.shape));
  if (here.dtype != there.dtype) return both("", std::string(word(here.dtype)), std::string(word(there.dtype)));
  if (here.kind != there.kind) return both("", std::string(word(here.kind)), std::string(word(there.kind)));
  if (here.alias_of != there.alias_of) return both("tied to ", here.alias_of, there.alias_of);
  if (here.group != there.group) {
    return both("parameter group ", std::to_string(here.group), std::to_string(there.group));
  }
  if (here.kind == TensorKind::counter) {  // what it began with is the head's affair: workers do not count
    const std::uint64_t ours = here.counter_at(1) - here.counter_at(0);
    const std::uint64_t theirs = there.counter_at(1) - there.counter_at(0);
    return ours == theirs ? "" : both("a step counts ", std::to_string(ours), std::to_string(theirs));
  }
  if (here.momentum != there.momentum) {
    return both("momentum ", std::to_string(here.momentum), std::to_string(there.momentum));
  }
  // Where a counter begins is the head's affair: workers get what they compute with from it.
  if (here.kind != TensorKind::counter && here.content_hash != there.content_hash) {
    return here.name + ": the frozen values differ";
  }
  return {};
}

}  // namespace

std::uint64_t LayoutEntry::elements() const noexcept {
  std::uint64_t product = 1;
  for (const std::int64_t size : shape) product *= static_cast<std::uint64_t>(size);
  return product;
}

std::uint64_t LayoutEntry::counter_at(std::uint64_t steps) const noexcept {
  return content_hash + steps * (momentum > 0 ? static_cast<std::uint64_t>(momentum) : 1);
}

Result<Layout> Layout::make(std::vector<LayoutEntry> entries) {
  if (auto status = check_entries(entries); !status) return status.error();
  Layout layout;
  layout.entries_ = std::move(entries);

  std::uint64_t offset = 0;
  std::array<std::uint64_t, 4> bounds{};  // where each region starts, and the end
  constexpr std::array kRegions{ChunkKind::large, ChunkKind::small, ChunkKind::statistics};
  for (std::size_t region = 0; region < kRegions.size(); ++region) {
    for (std::size_t i = 0; i < layout.entries_.size(); ++i) {
      const LayoutEntry& entry = layout.entries_[i];
      if (!on_the_wire(entry.kind) || region_of(entry) != kRegions[region]) continue;
      const std::uint64_t elements = entry.elements();
      layout.placements_.push_back({static_cast<std::uint32_t>(i), offset, elements});
      offset += align_up(elements, kAlignElements);
      if (offset > kElementsMax) {
        return input_error("the model has more than " + std::to_string(kElementsMax) +
                               " trained elements, counted up to '" + entry.name + "'",
                           "freeze a part of it");
      }
      if (entry.kind == TensorKind::trained) layout.parameters_ += elements;
    }
    bounds[region + 1] = offset;
  }
  layout.flat_elements_ = offset;

  const std::uint64_t chunk_bytes =
      align_up(std::clamp(bounds[1] * sizeof(float) / kChunksAimed, kChunkBytesMin, kChunkBytesMax),
               kAlignElements * sizeof(float));
  const std::uint64_t step = chunk_bytes / sizeof(float);
  cut(layout.chunks_, bounds[0], bounds[1], step, ChunkKind::large);
  cut(layout.chunks_, bounds[1], bounds[2], step, ChunkKind::small);
  const std::uint64_t statistics = bounds[3] - bounds[2];
  if (statistics * sizeof(float) > kStatisticsBytesMax) {
    return input_error("the BatchNorm statistics take " + std::to_string(statistics * sizeof(float)) +
                           " bytes, expected at most " + std::to_string(kStatisticsBytesMax),
                       "use another normalisation, or freeze the statistics");
  }
  // One chunk, so that a pair of mean and variance always arrives together.
  if (statistics > 0) cut(layout.chunks_, bounds[2], bounds[3], statistics, ChunkKind::statistics);
  return layout;
}

bool Layout::has_statistics() const noexcept {
  return !chunks_.empty() && chunks_.back().kind == ChunkKind::statistics;
}

std::pair<std::size_t, std::size_t> Layout::placements_of(ChunkId chunk) const noexcept {
  MOTLEY_ASSERT(chunk < chunks_.size());
  const Chunk& piece = chunks_[chunk];
  const std::uint64_t end = piece.offset + piece.elements;
  const auto first = std::partition_point(placements_.begin(), placements_.end(), [&piece](const Placement& tensor) {
    return tensor.offset + tensor.elements <= piece.offset;
  });
  const auto last =
      std::partition_point(first, placements_.end(), [end](const Placement& tensor) { return tensor.offset < end; });
  return {static_cast<std::size_t>(first - placements_.begin()), static_cast<std::size_t>(last - placements_.begin())};
}

std::string difference(const Layout& here, const Layout& there) {
  const auto ours = here.entries();
  const auto theirs = there.entries();
  const std::size_t common = std::min(ours.size(), theirs.size());
  for (std::size_t i = 0; i < common; ++i) {
    if (ours[i].name != theirs[i].name) {
      return "tensor " + std::to_string(i) + ": " + ours[i].name + " here, " + theirs[i].name + " there";
    }
    if (auto text = entry_difference(ours[i], theirs[i]); !text.empty()) return text;
  }
  if (ours.size() > common) return ours[common].name + ": here, missing there";
  if (theirs.size() > common) return theirs[common].name + ": missing here, there";
  return {};
}

}  // namespace motley
