#include "engine/head/setup.h"

#include <algorithm>
#include <limits>

#include "wire/limits.h"

namespace motley::engine {
namespace {

// Every layer has small tensors, so a worker's forward pass needs them first, then the large ones in their order.
std::uint32_t first_small(const Layout& layout) {
  const auto chunks = layout.chunks();
  return static_cast<std::uint32_t>(std::ranges::find(chunks, ChunkKind::small, &Chunk::kind) - chunks.begin());
}

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

// The step whose chunks may be applied one by one, and all after it.
std::uint64_t whole_until(const ps::Server& server) {
  if (!server.outside() && !server.clips()) return 0;
  return server.outside() || !server.clips_by_step_before() ? kNever : server.version() + 1;
}

// So many passes measure what a worker and its messages take.
constexpr std::uint64_t kSoloAfter = 3;

// All chunks, those of large tensors in this codec.
double bytes_in(const Layout& layout, codec::CodecId codec) {
  std::size_t bytes = 0;
  for (const Chunk& chunk : layout.chunks())
    bytes += codec::encoded_bytes(chunk.kind == ChunkKind::large ? codec : codec::CodecId::fp32, chunk.elements);
  return static_cast<double>(bytes);
}

}  // namespace

modes::RunConfig machine_config(const CoordinatorOptions& options, const ps::Server& server) {
  return {.incarnation = options.incarnation,
          .first_version = server.version(),
          .steps = options.steps,
          .epochs = options.epochs,
          .train_samples = options.train_samples,
          .test_samples = options.test_samples,
          .global_batch = options.global_batch,
          .batch_changes = options.batch_changes,
          .grain = options.grain,
          .evaluate_every = options.evaluate_every,
          .min_workers = options.min_workers,
          .sessions_max = wire::kSessionsMax,
          .chunks = static_cast<std::uint32_t>(server.layout().chunks().size()),
          .first_applied = first_small(server.layout()),
          .whole_until = whole_until(server),
          .evaluates_in_background = !options.rates_follow_evaluations,
          .resumable = options.resumable,
          .pauses = options.pauses,
          .pause_owed = options.pause_owed,
          .heartbeat = options.timeouts.heartbeat,
          .silence = options.timeouts.silence,
          .loading = options.timeouts.loading,
          .verify = options.verify,
          .solo_after = server.outside() ? 0 : kSoloAfter,
          .local_steps = options.local_steps,
          .local_batch = options.local_batch,
          .overlap = options.overlap,
          .owed = options.owed};
}

ContributionBytes contribution_bytes(const Layout& layout) {
  ContributionBytes bytes{};
  for (std::size_t codec = 0; codec < bytes.size(); ++codec)
    bytes[codec] = bytes_in(layout, static_cast<codec::CodecId>(codec));
  return bytes;
}

double busier_share(const Layout& layout, const CoordinatorOptions& options) {
  const double up = bytes_in(layout, options.gradients.value_or(codec::CodecId::fp32));
  const double down = bytes_in(layout, options.weights.value_or(codec::CodecId::fp32));
  return std::max(up, down) / std::max(1.0, bytes_in(layout, codec::CodecId::fp32));
}

}  // namespace motley::engine
