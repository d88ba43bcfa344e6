// A step of the parameter server: contributions are summed and divided, the norm is clipped, AdamW applied. One JSON
// object on standard output.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>

#include "base/assert.h"
#include "base/philox.h"
#include "bench/meter.h"
#include "codec/codec.h"
#include "figures.h"
#include "machine/process_memory.h"
#include "machine/spare_memory.h"
#include "motley/layout.h"
#include "ps/server.h"
#include "runtime/head/thread_team.h"

namespace {

using namespace motley;
using namespace motley::bench;

struct ServerOptions {
  std::uint64_t parameters = 16'000'000;
  std::uint32_t contributions = 2;
  codec::CodecId codec = codec::CodecId::fp32;  // of the contributions
  bool clips = true;
  std::uint32_t threads = 1;
  std::uint32_t steps = 5;  // after one that warms up
};

struct ServerReport {
  std::uint64_t parameters = 0, chunks = 0;
  double step_ms = 0;              // median
  double touched_gb_s = 0;         // what a step reads and writes in memory
  double memcpy_touched_gb_s = 0;  // of as many threads together
  double bytes_per_parameter = 0;  // of memory at its highest, without the contributions; 0: not known
};

constexpr std::uint64_t kTensor = 4'000'000;  // elements of most tensors of a model of this size
constexpr double kClipNorm = 1;               // less than the norm of what is contributed: every step scales

Result<Layout> layout_of(std::uint64_t parameters) {
  std::vector<LayoutEntry> entries;
  for (std::uint64_t left = parameters; left > 0;) {
    const std::uint64_t count = std::min(left, kTensor);
    LayoutEntry entry;
    entry.name = "layer" + std::to_string(entries.size()) + ".weight";
    entry.shape = {static_cast<std::int64_t>(count)};
    entries.push_back(std::move(entry));
    left -= count;
  }
  return Layout::make(std::move(entries));
}

std::vector<float> random_floats(std::size_t count, std::uint64_t seed) {
  Philox philox(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(philox.next_u32()) * 0x1p-31F - 1;
  return values;
}

/// A server, and what the workers sent.
class Scene {
 public:
  Scene(const Layout& layout, const ServerOptions& options) : layout_(layout), options_(options) {}

  void contribute() {
    const std::vector<float> values = random_floats(Layout::kChunkBytesMax / sizeof(float), 1);
    for (std::uint32_t i = 0; i < options_.contributions; ++i) {
      std::vector<std::vector<std::byte>>& chunks = bodies_.emplace_back();
      for (const Chunk& chunk : layout_.chunks()) {
        std::vector<std::byte>& body = chunks.emplace_back(codec::encoded_bytes(options_.codec, chunk.elements));
        const std::span<const float> some = std::span(values).first(chunk.elements);
        if (options_.codec == codec::CodecId::fp32) {
          std::memcpy(body.data(), some.data(), some.size_bytes());
        } else {
          codec::encode(options_.codec, some, {}, body, {});
        }
      }
    }
  }
  Status open() {
    ps::Snapshot snapshot;
    const std::vector<float> values = random_floats(Layout::kChunkBytesMax / sizeof(float), 2);
    for (const Chunk& chunk : layout_.chunks()) {
      snapshot.weights.push_back(SharedBytes::copy_of(std::as_bytes(std::span(values).first(chunk.elements))));
    }
    ps::OptimizerSpec optimizer;
    optimizer.kind = ps::OptimizerKind::adamw;
    optimizer.groups.resize(1);
    Result<ps::Server> made = ps::Server::make(layout_, optimizer, {}, options_.clips ? kClipNorm : 0, snapshot);
    if (!made) return made.error();
    server_.emplace(std::move(*made));
    if (options_.threads > 1) server_->share_work(std::make_shared<runtime::ThreadTeam>(options_.threads - 1));
    return {};
  }
  void step() {
    std::vector<codec::Encoded> parts;
    for (ChunkId c = 0; c < layout_.chunks().size(); ++c) {
      parts.clear();
      for (const auto& chunks : bodies_) {
        parts.push_back(*codec::Encoded::make(options_.codec, chunks[c], layout_.chunks()[c].elements));
      }
      server_->reduce(c, parts, 32, 32);
      if (!options_.clips) server_->apply(c);
    }
    if (!options_.clips) return;
    MOTLEY_ASSERT(server_->close_gradient().ok());
    for (ChunkId c = 0; c < layout_.chunks().size(); ++c) server_->apply(c);
  }
  void finish() { server_->finish_step(); }

 private:
  const Layout& layout_;
  const ServerOptions& options_;
  std::vector<std::vector<std::vector<std::byte>>> bodies_;  // by contribution and chunk
  std::optional<ps::Server> server_;
};

/// Seconds until all threads have done it.
template <class Work>
double together_s(std::uint32_t threads, Work work) {
  const Meter meter;
  std::vector<std::thread> others;
  for (std::uint32_t i = 1; i < threads; ++i) others.emplace_back([&work, i] { work(i); });
  work(0);
  for (std::thread& thread : others) thread.join();
  return meter.wall_s();
}

double memcpy_touched_gb_s(std::uint32_t threads, std::uint32_t rounds) {
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  std::vector<std::vector<char>> from(threads, std::vector<char>(kBytes, 1)), to = from;
  double best = 0;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    const double took_s =
        together_s(threads, [&](std::uint32_t i) { std::memcpy(to[i].data(), from[i].data(), kBytes); });
    best = std::max(best, 2.0 * threads * static_cast<double>(kBytes) / took_s / 1e9);
  }
  return best;
}

/// Each contribution is read and the sum written; AdamW reads four arrays, writes three. Clipping rides on that.
double touched_bytes(const ServerOptions& options, const Layout& layout) {
  const auto elements = static_cast<double>(layout.flat_elements());
  const double contribution = static_cast<double>(codec::encoded_bytes(options.codec, 1U << 20)) / (1U << 20);
  return elements * (options.contributions * contribution + 4 + 28);
}

Status check_room(const ServerOptions& options) {
  constexpr double kServerBytes = 20;
  const double contribution = static_cast<double>(codec::encoded_bytes(options.codec, 1U << 20)) / (1U << 20);
  const double bytes = static_cast<double>(options.parameters) * (kServerBytes + options.contributions * contribution);
  return machine::check_memory_for(static_cast<std::uint64_t>(bytes),
                                   "a server of " + std::to_string(options.parameters) + " parameters",
                                   "fewer --parameters or --contributions");
}

/// Errors: memory, input.
Result<ServerReport> measure_server(const ServerOptions& options) {
  if (Status status = check_room(options); !status) return status.error();
  const Result<Layout> layout = layout_of(options.parameters);
  if (!layout) return layout.error();
  Scene scene(*layout, options);
  scene.contribute();
  const std::uint64_t before = machine::process_memory().used;
  if (Status status = scene.open(); !status) return status.error();
  ServerReport report;
  report.parameters = layout->parameters();
  report.chunks = layout->chunks().size();
  std::vector<double> times;
  std::uint64_t highest = 0;
  for (std::uint32_t step = 0; step <= options.steps; ++step) {
    const Meter meter;
    scene.step();
    const double took_s = meter.wall_s();
    highest = std::max(highest, machine::process_memory().used);
    const Meter rest;
    scene.finish();
    if (step > 0) times.push_back(took_s + rest.wall_s());
  }
  const double step_s = median(times);
  report.step_ms = 1e3 * step_s;
  report.touched_gb_s = touched_bytes(options, *layout) / step_s / 1e9;
  report.memcpy_touched_gb_s = memcpy_touched_gb_s(options.threads, options.steps);
  if (highest > before) {
    report.bytes_per_parameter = static_cast<double>(highest - before) / static_cast<double>(report.parameters);
  }
  return report;
}

}  // namespace

int main(int argc, char** argv) {
  ServerOptions options;
  std::string codec = "fp32";
  CLI::App app("A step of the parameter server: sum, clip, AdamW; its time and memory, beside a memcpy.");
  app.add_option("--parameters", options.parameters, "of the model (default: 16000000)")
      ->check(CLI::Range(std::uint64_t{4096}, std::uint64_t{1} << 33));
  app.add_option("--contributions", options.contributions, "to be summed (default: 2)")->check(CLI::Range(1, 64));
  app.add_option("--codec", codec, "of the contributions (default: fp32)")
      ->check(CLI::IsMember({"fp32", "bf16", "int8", "int4"}));
  app.add_flag("!--no-clipping", options.clips, "without the norm, in one go over the memory");
  app.add_option("--threads", options.threads, "that share the arithmetic, as in a run (default: 1)")
      ->check(CLI::Range(1, 256));
  app.add_option("--steps", options.steps, "to be measured (default: 5)")->check(CLI::Range(1, 10000));
  CLI11_PARSE(app, argc, argv);
  options.codec = *codec::from_word(codec);
  const Result<ServerReport> report = measure_server(options);
  if (!report) return failed(report.error());
  say(Json{{"bench", "server"},
           {"parameters", report->parameters},
           {"chunks", report->chunks},
           {"contributions", options.contributions},
           {"codec", codec},
           {"clips", options.clips},
           {"threads", options.threads},
           {"steps", options.steps},
           {"step_ms", report->step_ms},
           {"touched_gb_s", report->touched_gb_s},
           {"memcpy_touched_gb_s", report->memcpy_touched_gb_s},
           {"bytes_per_parameter", report->bytes_per_parameter}});
  return 0;
}
