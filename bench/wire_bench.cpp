// Frames over loopback, plain and TLS, one and two connections, one way and both, beside what blocking calls move in
// the same run. One JSON object a row on standard output.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <future>
#include <map>
#include <mutex>
#include <thread>

#include "bench/flood.h"
#include "bench/meter.h"
#include "figures.h"
#include "machine/processor_time.h"
#include "raw.h"
#include "transport/tcp/tcp.h"

namespace {

using namespace motley;
using namespace motley::bench;

struct Speed {
  double gb_per_s = 0;
  double processor_s_per_gb = 0;  // of the whole process; on a busy machine the steadier of the two
  double receiver_s_per_gb = 0;   // of that, the receiving end's; 0 where both ends send
};

/// Processor time of those threads that call note(), from the beginning of each to its last call. Any thread.
class ThreadMeter {
 public:
  void note() {
    const double seconds = machine::thread_time_s();
    const std::lock_guard lock(mutex_);
    seconds_[std::this_thread::get_id()] = seconds;
  }
  [[nodiscard]] double processor_s() const {
    const std::lock_guard lock(mutex_);
    double sum = 0;
    for (const auto& [id, seconds] : seconds_) sum += seconds;
    return sum;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::thread::id, double> seconds_;
};

struct WireOptions {
  std::uint64_t megabytes = 512;  // each way, over all connections
  std::uint32_t rounds = 3;
  std::uint32_t io_threads = 1;  // of the transport, on each side
  std::vector<std::uint32_t> connections{1, 2};
};

struct WireRow {
  bool encrypted = false;
  bool both_ways = false;
  std::uint32_t connections = 1;
  Speed motley, raw;  // medians of the rounds; both ways: the sum
  double best_gb_per_s = 0;
  double over_raw = 0;  // median of the ratios of neighbours
};

using transport::Connection;

constexpr std::size_t kBody = wire::kBodyBytesMax;
constexpr std::size_t kWindowBytes = 8 << 20;

/// Counts frames; the thread that waits is woken once.
class Counter final : public transport::Receiver {
 public:
  Counter(std::uint64_t expected, ThreadMeter& meter) : expected_(expected), meter_(meter) {}
  void on_frame(wire::Frame /*frame*/) override {
    meter_.note();
    if (++seen_ == expected_) done_.set_value({});
  }
  void on_closed(Error error) override {
    if (seen_ < expected_) done_.set_value(std::move(error));
    seen_ = expected_;
  }
  Status wait() { return done_.get_future().get(); }

 private:
  std::uint64_t expected_, seen_ = 0;
  ThreadMeter& meter_;
  std::promise<Status> done_;
};

using Pair = std::pair<std::shared_ptr<Connection>, std::shared_ptr<Connection>>;

Result<Pair> connect(transport::Tcp& client, transport::Tcp& server) {
  std::promise<std::shared_ptr<Connection>> accepted;
  auto listener = server.listen({"127.0.0.1", 0}, [&](const std::shared_ptr<Connection>& c) { accepted.set_value(c); });
  if (!listener) return listener.error();
  std::promise<Result<std::shared_ptr<Connection>>> connected;
  client.connect({{"127.0.0.1", listener.value()->port()}}, std::nullopt, std::chrono::seconds(5),
                 [&](auto result) { connected.set_value(std::move(result)); });
  auto near = connected.get_future().get();
  if (!near) return near.error();
  auto far = accepted.get_future().get();
  far->mark_proven();
  return Pair(std::move(*near), std::move(far));
}

Speed speed_of(const WireRow& row, const Meter& meter, const ThreadMeter& receiving, std::uint64_t bytes) {
  const double gigabytes = static_cast<double>(bytes) / 1e9;
  return {gigabytes / meter.wall_s(), meter.processor_s() / gigabytes,
          row.both_ways ? 0 : receiving.processor_s() / gigabytes};
}

Result<Speed> measure_motley(const WireRow& row, std::uint32_t io_threads, std::uint64_t frames) {
  transport::TcpOptions options;
  options.plaintext = !row.encrypted;
  options.io_threads = io_threads;
  if (row.encrypted) options.identity = transport::make_identity();
  ThreadMeter receiving;
  transport::Tcp server(options), client(options);
  std::vector<Pair> pairs;
  std::vector<std::shared_ptr<Counter>> counters;
  for (std::uint32_t i = 0; i < row.connections; ++i) {
    Result<Pair> pair = connect(client, server);
    if (!pair) return pair.error();
    counters.push_back(std::make_shared<Counter>(frames, receiving));
    pair->second->start(counters.back());
    const auto back = std::make_shared<Counter>(frames, receiving);
    pair->first->start(back);
    if (row.both_ways) counters.push_back(back);
    pairs.push_back(std::move(*pair));
  }
  const wire::Frame frame = flood_frame(0, kBody);
  const auto send = [&frame, frames](Connection& connection) {
    flood(connection, frame, kWindowBytes, [frames](std::uint64_t sent) { return sent < frames; });
  };
  const Meter meter;
  std::vector<std::thread> threads;
  for (const Pair& pair : pairs) {
    threads.emplace_back([&send, &connection = *pair.first] { send(connection); });
    if (row.both_ways) threads.emplace_back([&send, &connection = *pair.second] { send(connection); });
  }
  for (std::thread& thread : threads) thread.join();
  Status status;
  for (const auto& counter : counters) {
    if (Status ended = counter->wait(); !ended) status = std::move(ended);
  }
  if (!status) return status.error();
  return speed_of(row, meter, receiving, counters.size() * frames * kBody);
}

void raw_send(RawStream& stream, std::uint64_t frames) {
  const std::vector<char> frame(wire::kHeaderBytes + kBody, 42);
  for (std::uint64_t i = 0; i < frames; ++i) stream.send(frame.data(), frame.size());
}

void raw_receive(RawStream& stream, std::uint64_t frames, ThreadMeter& meter) {
  std::vector<char> frame(wire::kHeaderBytes + kBody);
  for (std::uint64_t left = frames * frame.size(); left > 0;) {
    left -= stream.receive(frame.data(), std::min<std::uint64_t>(left, frame.size()));
  }
  meter.note();
}

Result<Speed> measure_raw(const WireRow& row, std::uint64_t frames) {
  std::vector<RawPair> pairs;
  const std::uint32_t streams = row.connections * (row.encrypted && row.both_ways ? 2 : 1);
  for (std::uint32_t i = 0; i < streams; ++i) {
    Result<RawPair> pair = row.encrypted ? raw_tls() : raw_plain();
    if (!pair) return pair.error();
    pairs.push_back(std::move(*pair));
  }
  ThreadMeter receiving;
  const Meter meter;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    auto& [near, far] = pairs[i];
    const bool forward = i < row.connections;
    threads.emplace_back([&from = forward ? *near : *far, frames] { raw_send(from, frames); });
    threads.emplace_back([&receiving, &to = forward ? *far : *near, frames] { raw_receive(to, frames, receiving); });
    if (row.encrypted || !row.both_ways) continue;
    threads.emplace_back([&from = *far, frames] { raw_send(from, frames); });
    threads.emplace_back([&receiving, &to = *near, frames] { raw_receive(to, frames, receiving); });
  }
  for (std::thread& thread : threads) thread.join();
  return speed_of(row, meter, receiving, (row.both_ways ? 2U : 1U) * frames * kBody * row.connections);
}

struct Rounds {
  std::vector<double> speed, processor, receiver, raw_speed, raw_processor, raw_receiver, ratio;
};

void summarise(WireRow& row, const Rounds& rounds) {
  row.motley = {median(rounds.speed), median(rounds.processor), median(rounds.receiver)};
  row.raw = {median(rounds.raw_speed), median(rounds.raw_processor), median(rounds.raw_receiver)};
  row.best_gb_per_s = *std::max_element(rounds.speed.begin(), rounds.speed.end());
  row.over_raw = median(rounds.ratio);
}

/// Raw TLS uses one connection each way where it goes both ways: an SSL of OpenSSL serves one thread at a time.
/// Errors: network, io (loopback does not work).
Result<std::vector<WireRow>> measure_wire(const WireOptions& options) {
  std::vector<WireRow> rows;
  for (const std::uint32_t connections : options.connections) {
    for (const bool encrypted : {false, true}) {
      for (const bool both : {false, true}) {
        WireRow row;
        row.encrypted = encrypted;
        row.both_ways = both;
        row.connections = connections;
        rows.push_back(row);
      }
    }
  }
  std::vector<Rounds> rounds(rows.size());
  for (std::uint32_t round = 0; round < options.rounds; ++round) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::uint64_t frames =
          std::max<std::uint64_t>(1, options.megabytes * 1'000'000 / kBody / rows[i].connections);
      const Result<Speed> raw = measure_raw(rows[i], frames);
      if (!raw) return raw.error();
      const Result<Speed> motley = measure_motley(rows[i], options.io_threads, frames);
      if (!motley) return motley.error();
      rounds[i].speed.push_back(motley->gb_per_s);
      rounds[i].processor.push_back(motley->processor_s_per_gb);
      rounds[i].receiver.push_back(motley->receiver_s_per_gb);
      rounds[i].raw_receiver.push_back(raw->receiver_s_per_gb);
      rounds[i].raw_speed.push_back(raw->gb_per_s);
      rounds[i].raw_processor.push_back(raw->processor_s_per_gb);
      rounds[i].ratio.push_back(motley->gb_per_s / raw->gb_per_s);
    }
  }
  for (std::size_t i = 0; i < rows.size(); ++i) summarise(rows[i], rounds[i]);
  return rows;
}

void print(const WireRow& row, const WireOptions& options) {
  Json event{{"bench", "wire"},
             {"kind", row.encrypted ? "tls" : "plain"},
             {"connections", row.connections},
             {"both_ways", row.both_ways},
             {"gb_s", row.motley.gb_per_s},
             {"best_gb_s", row.best_gb_per_s},
             {"raw_gb_s", row.raw.gb_per_s},
             {"over_raw", row.over_raw},
             {"processor_s_per_gb", row.motley.processor_s_per_gb},
             {"raw_processor_s_per_gb", row.raw.processor_s_per_gb},
             {"io_threads", options.io_threads},
             {"megabytes", options.megabytes},
             {"rounds", options.rounds}};
  if (!row.both_ways) {
    event["sender_s_per_gb"] = row.motley.processor_s_per_gb - row.motley.receiver_s_per_gb;
    event["receiver_s_per_gb"] = row.motley.receiver_s_per_gb;
    event["raw_sender_s_per_gb"] = row.raw.processor_s_per_gb - row.raw.receiver_s_per_gb;
    event["raw_receiver_s_per_gb"] = row.raw.receiver_s_per_gb;
  }
  say(event);
}

}  // namespace

int main(int argc, char** argv) {
  WireOptions options;
  CLI::App app("Frames over loopback, plain and TLS, beside blocking sockets and blocking OpenSSL in the same run.");
  app.add_option("--megabytes", options.megabytes, "to send each way in each turn (default: 512)")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--rounds", options.rounds, "turns that each of them gets (default: 3)")->check(CLI::Range(1, 1000));
  app.add_option("--io-threads", options.io_threads,
                 "of the transport, on each side (default: 1, as in a run on links of up to 4 Gbit/s)")
      ->check(CLI::Range(1, 16));
  app.add_option("--connections", options.connections, "side by side; may be repeated (default: 1 and 2)")
      ->check(CLI::Range(1, 16));
  CLI11_PARSE(app, argc, argv);
  const Result<std::vector<WireRow>> rows = measure_wire(options);
  if (!rows) return failed(rows.error());
  for (const WireRow& row : *rows) print(row, options);
  return 0;
}
