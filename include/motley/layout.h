#pragma once
// The flat parameter vector: which tensors it holds, where, and how it is cut into chunks. Pure data; two machines that
// train the same model compute the same Layout from the same entries.
//
// Regions, in this order, each starting on a chunk boundary:
//   large       trained tensors of at least kSmallTensorElements elements, in forward order
//   small       trained tensors below that, in forward order (always fp32 on the wire)
//   statistics  BatchNorm running_mean / running_var pairs (one chunk; see ps)
// Frozen, counter and alias entries take no room. Each tensor starts on a multiple of kAlignElements; padding is zero.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "motley/result.h"

namespace motley {

enum class DType : std::uint8_t { f32 = 1, f16 = 2, bf16 = 3, f64 = 4, i64 = 5, i32 = 6, u8 = 7, boolean = 8 };

enum class TensorKind : std::uint8_t {
  trained = 1,       // has a gradient; on the wire
  frozen = 2,        // checked by hash only
  running_mean = 3,  // BatchNorm; must be followed at once by its running_var
  running_var = 4,
  counter = 5,  // num_batches_tracked: follows from the number of steps
  alias = 6,    // tied to another entry; counted once
};

struct LayoutEntry {
  std::string name{};                 // as in state_dict
  std::vector<std::int64_t> shape{};  // empty for a scalar
  DType dtype = DType::f32;
  TensorKind kind = TensorKind::trained;
  std::uint32_t group = 0;         // optimizer parameter group
  float momentum = 0;              // running_mean / running_var: the moving average's; counter: see counter_at()
  std::string alias_of{};          // kind alias
  std::uint64_t content_hash = 0;  // kind frozen: hash of the bytes; counter: see counter_at()
  bool operator==(const LayoutEntry&) const = default;
  [[nodiscard]] std::uint64_t elements() const noexcept;
  /// Of a counter after so many steps: `content_hash` at first, and `momentum` more with each; 0 counts as 1. A layer
  /// that runs twice in a forward pass counts by two. Modulo 2^64.
  [[nodiscard]] std::uint64_t counter_at(std::uint64_t steps) const noexcept;
};

struct Placement {
  std::uint32_t entry = 0;   // index into entries()
  std::uint64_t offset = 0;  // first element in the flat vector
  std::uint64_t elements = 0;
};

enum class ChunkKind : std::uint8_t { large, small, statistics };

struct Chunk {
  std::uint64_t offset = 0;  // first element in the flat vector
  std::uint32_t elements = 0;
  ChunkKind kind = ChunkKind::large;
};

using ChunkId = std::uint32_t;

class Layout {
 public:
  static constexpr std::uint64_t kSmallTensorElements = 4096;
  static constexpr std::uint64_t kAlignElements = 64;  // 256 bytes of fp32
  static constexpr std::uint64_t kChunkBytesMin = 64 << 10;
  static constexpr std::uint64_t kChunkBytesMax = 4 << 20;
  static constexpr std::uint64_t kElementsMax = std::uint64_t{1} << 36;
  static constexpr std::size_t kEntriesMax = 65536;

  Layout() = default;
  /// Fails with ErrorCode::input for duplicate names, negative sizes, unpaired statistics, unsupported dtypes of
  /// trained tensors (f32 only) and sizes beyond the limits.
  static Result<Layout> make(std::vector<LayoutEntry> entries);

  [[nodiscard]] std::span<const LayoutEntry> entries() const noexcept { return entries_; }
  /// Tensors that lie in the flat vector, by offset.
  [[nodiscard]] std::span<const Placement> placements() const noexcept { return placements_; }
  [[nodiscard]] std::span<const Chunk> chunks() const noexcept { return chunks_; }
  [[nodiscard]] std::uint64_t flat_elements() const noexcept { return flat_elements_; }
  /// Number of trained parameters (without padding and statistics).
  [[nodiscard]] std::uint64_t parameters() const noexcept { return parameters_; }
  [[nodiscard]] bool has_statistics() const noexcept;
  /// Indices into placements() of the tensors that overlap a chunk, as [first, last).
  [[nodiscard]] std::pair<std::size_t, std::size_t> placements_of(ChunkId chunk) const noexcept;

 private:
  std::vector<LayoutEntry> entries_;
  std::vector<Placement> placements_;
  std::vector<Chunk> chunks_;
  std::uint64_t flat_elements_ = 0;
  std::uint64_t parameters_ = 0;
};

/// Empty when equal, else one sentence naming the first difference ("conv2.weight: [64, 32, 3, 3] here, [64, 16, 3, 3]
/// there").
std::string difference(const Layout& here, const Layout& there);

}  // namespace motley
