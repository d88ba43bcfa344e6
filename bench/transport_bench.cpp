// Throughput of one connection over loopback, plain and TLS, one way and both ways, beside raw blocking sockets that
// move the same frames in the same run. Prints one JSON object.
//   transport_bench [MEBIBYTES]

#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <thread>
#include <vector>

#include "transport/tcp/tcp.h"

namespace {

using namespace motley;
using namespace motley::transport;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kBody = wire::kSegmentBytesMax;
constexpr int kRounds = 3;

struct Speed {
  double gb_per_s = 0;
  double cpu_s_per_gb = 0;  // of both ends; on a busy machine the steadier of the two
};

/// From its making to stop().
class Meter {
 public:
  Speed stop(std::size_t bytes) const {
    const double gigabytes = static_cast<double>(bytes) / 1e9;
    const double wall_s = std::chrono::duration<double>(Clock::now() - start_).count();
    return {gigabytes / wall_s, (cpu_seconds() - cpu_start_s_) / gigabytes};
  }

 private:
  static double cpu_seconds() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
  }
  Clock::time_point start_ = Clock::now();
  double cpu_start_s_ = cpu_seconds();
};

[[noreturn]] void give_up(const std::string& what) {
  std::fprintf(stderr, "transport_bench: %s\n", what.c_str());
  std::exit(1);
}

/// Counts frames; the thread that waits is woken once.
class Counter : public Receiver {
 public:
  explicit Counter(std::size_t expected) : expected_(expected) {}
  void on_frame(wire::Frame) override {
    if (++seen_ == expected_) done_.set_value();
  }
  void on_closed(Error) override {}
  void wait() { done_.get_future().wait(); }

 private:
  std::size_t expected_, seen_ = 0;
  std::promise<void> done_;
};

/// Keeps a window of bytes in the queue, as the runtime does, from a thread of its own.
void send_all(Connection& connection, const wire::Frame& frame, std::size_t count) {
  constexpr std::size_t kWindow = 8 << 20;
  for (std::size_t i = 0; i < count; ++i) {
    while (connection.queued_bytes() > kWindow) std::this_thread::sleep_for(std::chrono::microseconds(200));
    connection.send(frame, Priority::gradients);
  }
}

Speed measure(bool plaintext, bool both_ways, std::size_t count) {
  TcpOptions options;
  options.plaintext = plaintext;
  if (!plaintext) options.identity = make_identity();
  Tcp server(options), client(options);
  std::promise<std::shared_ptr<Connection>> accepted;
  auto listener = server.listen({"127.0.0.1", 0}, [&](std::shared_ptr<Connection> c) { accepted.set_value(c); });
  if (!listener) give_up(listener.error().message);
  std::promise<Result<std::shared_ptr<Connection>>> connected;
  client.connect({{"127.0.0.1", listener.value()->port()}}, std::nullopt, std::chrono::seconds(5),
                 [&](auto result) { connected.set_value(std::move(result)); });
  auto result = connected.get_future().get();
  if (!result) give_up(result.error().message);
  const auto near = std::move(result).value();
  const auto far = accepted.get_future().get();
  far->mark_proven();
  const auto at_near = std::make_shared<Counter>(count), at_far = std::make_shared<Counter>(count);
  near->start(at_near);
  far->start(at_far);

  wire::FrameHeader header;
  header.type = wire::FrameType::gradient;
  const wire::Frame frame = wire::seal(header, SharedBytes::copy_of(std::vector<std::byte>(kBody, std::byte{42})));
  const Meter meter;
  std::thread back([&] {
    if (both_ways) send_all(*far, frame, count);
  });
  send_all(*near, frame, count);
  back.join();
  at_far->wait();
  if (both_ways) at_near->wait();
  return meter.stop((both_ways ? 2 : 1) * count * kBody);
}

void raw_send(int fd, std::size_t count) {
  const std::vector<char> frame(wire::kHeaderBytes + kBody, 42);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t sent = 0; sent < frame.size();) {
      const ssize_t n = ::send(fd, frame.data() + sent, frame.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) give_up("raw send failed");
      sent += static_cast<std::size_t>(n);
    }
  }
}

void raw_receive(int fd, std::size_t count) {
  std::vector<char> frame(wire::kHeaderBytes + kBody);
  for (std::size_t left = count * frame.size(); left > 0;) {
    const ssize_t n = ::recv(fd, frame.data(), std::min(left, frame.size()), 0);
    if (n <= 0) give_up("raw receive failed");
    left -= static_cast<std::size_t>(n);
  }
}

/// The same bytes through blocking calls: what the kernel gives, without frames, checksums or queues.
Speed measure_raw(bool both_ways, std::size_t count) {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener, generic, size) != 0 || ::listen(listener, 1) != 0) give_up("raw listen failed");
  ::getsockname(listener, generic, &size);
  const int near = ::socket(AF_INET, SOCK_STREAM, 0);
  if (::connect(near, generic, size) != 0) give_up("raw connect failed");
  const int far = ::accept(listener, nullptr, nullptr);
  const Meter meter;
  std::vector<std::thread> threads;
  threads.emplace_back(raw_send, near, count);
  threads.emplace_back(raw_receive, far, count);
  if (both_ways) {
    threads.emplace_back(raw_send, far, count);
    threads.emplace_back(raw_receive, near, count);
  }
  for (auto& thread : threads) thread.join();
  const Speed speed = meter.stop((both_ways ? 2 : 1) * count * kBody);
  for (const int fd : {near, far, listener}) ::close(fd);
  return speed;
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t mebibytes = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1024;
  const std::size_t count = mebibytes * (std::size_t{1} << 20) / kBody;
  Speed best[3][2];
  const auto keep = [](Speed& record, const Speed& speed) {
    if (record.gb_per_s == 0 || speed.cpu_s_per_gb < record.cpu_s_per_gb) record.cpu_s_per_gb = speed.cpu_s_per_gb;
    record.gb_per_s = std::max(record.gb_per_s, speed.gb_per_s);
  };
  for (int round = 0; round < kRounds; ++round) {
    for (const bool both : {false, true}) {
      keep(best[0][both], measure_raw(both, count));
      keep(best[1][both], measure(true, both, count));
      keep(best[2][both], measure(false, both, count));
    }
  }
  std::printf("{\"bench\":\"transport\",\"mebibytes\":%zu,\"frame_bytes\":%zu,\"rounds\":%d", mebibytes, kBody,
              kRounds);
  const char* names[3] = {"raw", "plain", "tls"};
  for (int kind = 0; kind < 3; ++kind) {
    std::printf(",\"%s_gb_per_s\":%.3f,\"%s_both_ways_gb_per_s\":%.3f", names[kind], best[kind][0].gb_per_s,
                names[kind], best[kind][1].gb_per_s);
    std::printf(",\"%s_cpu_s_per_gb\":%.3f", names[kind], best[kind][0].cpu_s_per_gb);
  }
  std::printf(",\"plain_over_raw\":%.3f,\"tls_over_raw\":%.3f}\n", best[1][0].gb_per_s / best[0][0].gb_per_s,
              best[2][0].gb_per_s / best[0][0].gb_per_s);
  return 0;
}
