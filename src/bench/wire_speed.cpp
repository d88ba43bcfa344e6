#include "bench/wire_speed.h"

#include <algorithm>
#include <future>
#include <thread>

#include "bench/flood.h"
#include "bench/raw.h"
#include "transport/tcp/tcp.h"

namespace motley::bench {
namespace {

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
  Speed speed = meter.speed(bytes);
  if (!row.both_ways) speed.receiver_s_per_gb = receiving.processor_s() / (static_cast<double>(bytes) / 1e9);
  return speed;
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
  row.best_gb_per_s = largest(rounds.speed);
  row.over_raw = median(rounds.ratio);
}

}  // namespace

Result<std::vector<WireRow>> measure_wire(const WireOptions& options, const runtime::StopSource& stop) {
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
      if (stop.requested()) return Error{ErrorCode::interrupted, "interrupted", ""};
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

}  // namespace motley::bench
