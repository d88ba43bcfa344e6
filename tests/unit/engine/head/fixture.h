#pragma once
// A coordinator with hand-driven workers. Gradients are small whole numbers, so that every way of cutting and summing
// them gives the same bits as one machine.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/head/coordinator.h"
#include "recording_output.h"

namespace motley::engine {

inline constexpr std::uint64_t kRun = 77;
inline constexpr const char* kTrain = "train-data";
inline constexpr const char* kTest = "test-data";

inline std::chrono::milliseconds ms(int count) { return std::chrono::milliseconds(count); }

/// Several chunks: three large, one small, one of statistics.
inline Layout test_layout(std::int64_t inputs = 40000) {
  std::vector<LayoutEntry> entries(4);
  entries[0].name = "weight";
  entries[0].shape = {inputs};
  entries[1].name = "bias";
  entries[1].shape = {10};
  for (const std::size_t of : {2U, 3U}) {
    entries[of].name = of == 2 ? "norm.running_mean" : "norm.running_var";
    entries[of].shape = {4};
    entries[of].kind = of == 2 ? TensorKind::running_mean : TensorKind::running_var;
    entries[of].momentum = 0.5F;
  }
  auto layout = Layout::make(std::move(entries));
  EXPECT_TRUE(layout.ok());
  return *std::move(layout);
}

inline ps::Server test_server(const Layout& layout, double clip_norm = 0) {
  ps::Snapshot start;
  for (const Chunk& chunk : layout.chunks()) {
    const std::vector<float> ones(chunk.elements, 1.0F);
    start.weights.push_back(SharedBytes::copy_of(std::as_bytes(std::span(ones))));
  }
  ps::OptimizerSpec optimizer;
  optimizer.groups.resize(1);
  optimizer.groups[0].lr = 0.25;
  optimizer.groups[0].momentum = 0.5;
  auto server = ps::Server::make(layout, optimizer, {}, clip_norm, std::move(start));
  EXPECT_TRUE(server.ok());
  return *std::move(server);
}

/// The gradient sum of the positions [first, first + count) of an epoch's order.
inline std::vector<float> gradient_sum(const Chunk& chunk, std::uint64_t first, std::uint64_t count) {
  std::array<float, 16> period{};
  for (std::uint64_t p = first; p < first + count; ++p)
    for (std::size_t i = 0; i < period.size(); ++i)
      period[i] += static_cast<float>((p * 7 + i * 3 + chunk.offset) % 16);
  std::vector<float> sum(chunk.elements);
  for (std::size_t i = 0; i < sum.size(); i += period.size())
    std::copy_n(period.begin(), std::min(period.size(), sum.size() - i), sum.begin() + static_cast<std::ptrdiff_t>(i));
  return sum;
}

inline double loss_of(std::uint64_t first, std::uint64_t count) {
  double sum = 0;
  for (std::uint64_t p = first; p < first + count; ++p) sum += static_cast<double>(p % 5);
  return sum;
}

class CoordinatorTest : public testing::Test {
 protected:
  /// One worker as the coordinator sees it. Nothing is answered by itself.
  struct Peer {
    SessionId session = 0;
    std::uint64_t fence = 0;
    double seconds_per_sample = 0.0625;
    std::uint32_t micro_batch = 0;                                               // 0: it does not say
    std::vector<wire::Grant> grants;                                             // not answered yet
    std::vector<wire::Grant> calibrations;                                       // answered at once
    std::vector<wire::Message> control;                                          // everything else
    std::map<std::uint64_t, std::map<ChunkId, std::vector<std::byte>>> weights;  // by version
    std::map<std::uint64_t, std::size_t> weight_bytes;
    std::vector<wire::Frame> frames;  // of weights

    template <class M>
    [[nodiscard]] std::vector<M> all() const {
      std::vector<M> found;
      for (const wire::Message& message : control)
        if (const M* match = std::get_if<M>(&message)) found.push_back(*match);
      return found;
    }
  };

  CoordinatorTest() { options = default_options(); }

  static CoordinatorOptions default_options() {
    CoordinatorOptions o;
    o.run = kRun;
    o.incarnation = 3;
    o.train_samples = 40;
    o.global_batch = 16;
    o.steps = 4;
    o.train_fingerprint = kTrain;
    o.test_fingerprint = kTest;
    return o;
  }

  /// `version`: as resumed after so many steps.
  void make(std::uint64_t version = 0, double clip_norm = 0) {
    coordinator = std::make_unique<Coordinator>(options, reference(version, clip_norm), output);
    coordinator->start(now);
  }

  /// For so many workers, each with its share.
  void make_with(std::vector<double> shares) {
    options.min_workers = shares.size();
    options.shares = std::move(shares);
    make();
  }

  // --- joining ---

  Peer& open(SessionId session, const std::string& name = {}, Locality locality = Locality::network,
             const std::string& key = {}) {
    wire::Hello hello;
    hello.name = name.empty() ? std::string("w").append(std::to_string(session)) : name;
    hello.machine = std::string("host").append(std::to_string(session));
    hello.device = "cpu";
    coordinator->session_opened(session, hello, locality, now, key);
    Peer& peer = peers[session];
    peer.session = session;
    collect();
    return peer;
  }

  /// What a device draws of random numbers.
  std::function<std::uint64_t(SessionId)> numbers_of = [](SessionId) { return 0; };

  /// `known`: seconds per sample, as an earlier run learned it.
  void ready(Peer& peer, double known = 0) {
    const auto entries = layout.entries();
    say(peer, wire::Ready{{entries.begin(), entries.end()}, kTrain, kTest, 0, known, {}, {}, numbers_of(peer.session)});
  }

  void synced(Peer& peer, std::optional<std::uint64_t> version = {}) {
    say(peer, wire::Synced{version.value_or(coordinator->server().version())});
  }

  Peer& join(SessionId session, const std::string& name = {}, bool local = false, double seconds_per_sample = 0.0625,
             std::uint32_t micro_batch = 0) {
    Peer& peer = open(session, name, local ? Locality::process : Locality::network);
    peer.seconds_per_sample = seconds_per_sample;
    peer.micro_batch = micro_batch;
    ready(peer);
    synced(peer);
    return peer;
  }

  [[nodiscard]] static wire::FrameHeader header(const Peer& peer, wire::FrameType type) {
    return {.type = type, .run = kRun, .fence = peer.fence};
  }

  void deliver(Peer& peer, const wire::Frame& frame) {
    for (int i = 0; i < copies; ++i) coordinator->session_frame(peer.session, frame, now);
    collect();
  }

  void say(Peer& peer, const wire::Message& message) {
    deliver(peer, wire::seal(header(peer, wire::FrameType::control), wire::encode(message)));
  }

  [[nodiscard]] wire::Frame gradient_frame(const Peer& peer, const wire::Grant& grant, ChunkId chunk,
                                           std::vector<float> values) const {
    const Chunk& place = layout.chunks()[chunk];
    auto h = header(peer, place.kind == ChunkKind::statistics ? wire::FrameType::statistic : wire::FrameType::gradient);
    h.pass = grant.pass;
    h.subject = grant.lease;
    h.version = grant.version;
    h.chunk = chunk;
    return wire::seal(h, SharedBytes::copy_of(std::as_bytes(std::span(values))));
  }

  [[nodiscard]] wire::Frame gradient_frame(const Peer& peer, const wire::Grant& grant, ChunkId chunk) const {
    return gradient_frame(peer, grant, chunk,
                          gradient_sum(layout.chunks()[chunk], grant.pass_first + grant.first, grant.count));
  }

  void begin(Peer& peer, const wire::Grant& grant) {
    say(peer, wire::Begin{grant.pass, grant.lease, grant.first, grant.count, static_cast<double>(grant.count),
                          loss_of(grant.pass_first + grant.first, grant.count)});
  }

  void push(Peer& peer, const wire::Grant& grant, ChunkId chunk) { deliver(peer, gradient_frame(peer, grant, chunk)); }

  void finish(Peer& peer, const wire::Grant& grant) {
    wire::Finish done;
    done.pass = grant.pass;
    done.lease = grant.lease;
    done.first = grant.first;
    done.count = grant.count;
    done.weight = static_cast<double>(grant.count);
    done.loss_sum = loss_of(grant.first, grant.count);
    done.correct = grant.count / 2;
    done.compute_seconds = peer.seconds_per_sample * static_cast<double>(grant.count);
    done.wait_seconds = 0.25;
    done.micro_batch = peer.micro_batch;
    say(peer, done);
  }

  void compute(Peer& peer, const wire::Grant& grant) {
    if (grant.pass >> 56 == static_cast<std::uint64_t>(PassKind::evaluate)) return finish(peer, grant);
    begin(peer, grant);
    for (ChunkId chunk = 0; chunk < layout.chunks().size(); ++chunk) push(peer, grant, chunk);
    finish(peer, grant);
  }

  /// Answers the oldest grant.
  void work(Peer& peer) {
    ASSERT_FALSE(peer.grants.empty());
    compute(peer, take(peer));
  }

  wire::Grant take(Peer& peer) {
    EXPECT_FALSE(peer.grants.empty());
    const wire::Grant grant = peer.grants.empty() ? wire::Grant{} : peer.grants.front();
    if (!peer.grants.empty()) peer.grants.erase(peer.grants.begin());
    return grant;
  }

  wire::Grant begun(Peer& peer) {
    const wire::Grant grant = take(peer);
    begin(peer, grant);
    return grant;
  }

  /// Everybody answers until nothing is granted any more.
  void run() {
    for (int rounds = 0; rounds < 1000; ++rounds) {
      bool worked = false;
      for (auto& [session, peer] : peers) {
        if (peer.grants.empty() || output.closed.count(session) > 0) continue;
        work(peer);
        worked = true;
      }
      if (!worked) return;
    }
    FAIL() << "the run does not end";
  }

  void pass_time(Duration duration, const std::vector<Peer*>& alive = {}) {
    for (Duration done{}; done < duration; done += ms(100)) {
      now += ms(100);
      for (Peer* peer : alive) say(*peer, wire::Heartbeat{1, 0});
      coordinator->tick(now);
    }
    collect();
  }

  /// Weights of one undisturbed machine after `steps` steps.
  [[nodiscard]] ps::Server reference(std::uint64_t steps, double clip_norm = 0) const {
    ps::Server server = test_server(layout, clip_norm);
    const std::uint64_t per_epoch = (options.train_samples + options.global_batch - 1) / options.global_batch;
    for (std::uint64_t step = 0; step < steps; ++step) {
      const std::uint64_t first = step % per_epoch * options.global_batch;
      const std::uint64_t count = std::min(options.global_batch, options.train_samples - first);
      for (ChunkId chunk = 0; chunk < layout.chunks().size(); ++chunk) {
        const std::vector<float> sum = gradient_sum(layout.chunks()[chunk], first, count);
        const std::span<const float> part(sum);
        server.reduce(chunk, {&part, 1}, static_cast<double>(count), count);
      }
      EXPECT_TRUE(server.close_gradient().ok());
      for (ChunkId chunk = 0; chunk < layout.chunks().size(); ++chunk) server.apply(chunk);
      server.finish_step();
    }
    return server;
  }

  void expect_exact(std::uint64_t steps, double clip_norm = 0) {
    ASSERT_EQ(coordinator->server().version(), steps);
    const ps::Server expected = reference(steps, clip_norm);
    for (ChunkId chunk = 0; chunk < layout.chunks().size(); ++chunk) {
      const auto a = expected.weights(chunk).bytes();
      const auto b = coordinator->server().weights(chunk).bytes();
      EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end())) << "chunk " << chunk;
    }
    for (const StepClosed& step : output.steps) {
      std::uint64_t next = 0;
      for (const CommittedRange& range : step.ranges) {
        EXPECT_EQ(range.first, next);
        next += range.count;
      }
      EXPECT_EQ(next, step.samples);
      EXPECT_EQ(step.weight, static_cast<double>(step.samples));
      EXPECT_EQ(step.loss_sum, loss_of(step.step % 3 * options.global_batch, step.samples));
    }
  }

  void run_exact(std::uint64_t steps, double clip_norm = 0) {
    run();
    expect_exact(steps, clip_norm);
  }

  [[nodiscard]] std::vector<Membership> events_of(const std::string& name) const {
    std::vector<Membership> found;
    for (const WorkerChange& change : output.changes)
      if (change.name == name) found.push_back(change.event);
    return found;
  }

  /// Sorts what was sent since the last call into the peers.
  void collect() {
    for (auto& [session, sent] : output.sent) {
      Peer& peer = peers[session];
      for (const auto& [frame, lane] : sent) {
        EXPECT_EQ(frame.header.run, kRun);
        EXPECT_EQ(frame.header.length, frame.body.size());
        if (frame.header.type == wire::FrameType::weights) {
          EXPECT_EQ(frame.header.fence, peer.fence);
          auto& bytes = peer.weights[frame.header.version][frame.header.chunk];
          bytes.resize(frame.header.total);
          std::copy(frame.body.bytes().begin(), frame.body.bytes().end(), bytes.begin() + frame.header.offset);
          peer.weight_bytes[frame.header.version] += frame.body.size();
          peer.frames.push_back(frame);
        } else if (frame.header.type == wire::FrameType::control) {
          collect_control(peer, frame);
        }
      }
      sent.clear();
    }
    if (hold_calibrations) return;
    for (auto& [session, peer] : peers)
      for (const wire::Grant& trial : std::exchange(peer.calibrations, {})) finish(peer, trial);
  }

  void collect_control(Peer& peer, const wire::Frame& frame) {
    auto message = wire::decode(frame.body.bytes());
    ASSERT_TRUE(message.ok());
    if (const auto* admitted = std::get_if<wire::Admitted>(&*message)) peer.fence = admitted->fence;
    if (const auto* grant = std::get_if<wire::Grant>(&*message)) {
      const bool calibrates = grant->pass >> 56 == static_cast<std::uint64_t>(PassKind::calibrate);
      (calibrates ? peer.calibrations : peer.grants).push_back(*grant);
    } else {
      peer.control.push_back(*message);
    }
  }

  Layout layout = test_layout();
  CoordinatorOptions options;
  RecordingOutput output;
  std::unique_ptr<Coordinator> coordinator;
  std::map<SessionId, Peer> peers;
  Time now = std::chrono::seconds(1);
  bool hold_calibrations = false;
  int copies = 1;  // how often each frame arrives
};

}  // namespace motley::engine
