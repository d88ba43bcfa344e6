// Who ends a session says why on one connection and closes two: the reason is heard in whatever order they arrive.

#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>

#include "../hosts_scene.h"
#include "runtime/auth.h"
#include "runtime/lanes.h"
#include "transport/tcp/tcp.h"

namespace motley::runtime {
namespace {

using test::Scene;

// The other end of one connection, which says and closes what the test wants.
class Peer {
 public:
  explicit Peer(std::shared_ptr<transport::Connection> connection) : connection_(std::move(connection)) {
    connection_->mark_proven();
    connection_->start(inbox_);
  }
  void say(const wire::Message& message, std::uint64_t fence = 0) {
    wire::FrameHeader header;
    header.type = wire::FrameType::control;
    header.run = 1;
    header.fence = fence;
    connection_->send(wire::seal(header, wire::encode(message)), transport::Priority::control);
  }
  template <typename M>
  M hear() {
    std::unique_lock lock(inbox_->mutex);
    while (true) {
      inbox_->arrived.wait(lock, [&] { return !inbox_->messages.empty(); });
      const wire::Message first = std::move(inbox_->messages.front());
      inbox_->messages.pop_front();
      if (const auto* message = std::get_if<M>(&first)) return *message;
    }
  }
  /// Returns when the other side has seen the end and closed too.
  void close() {
    connection_->close();
    std::unique_lock lock(inbox_->mutex);
    inbox_->arrived.wait(lock, [&] { return inbox_->closed; });
  }
  const transport::PeerIdentity& identity() const { return connection_->peer(); }

 private:
  struct Inbox final : transport::Receiver {
    std::mutex mutex;
    std::condition_variable arrived;
    std::deque<wire::Message> messages;
    bool closed = false;
    void on_frame(wire::Frame frame) override {
      Result<wire::Message> message = wire::decode(frame.body.bytes());
      if (frame.header.type != wire::FrameType::control || !message) return;
      const std::lock_guard lock(mutex);
      messages.push_back(std::move(*message));
      arrived.notify_all();
    }
    void on_closed(Error /*error*/) override {
      const std::lock_guard lock(mutex);
      closed = true;
      arrived.notify_all();
    }
  };
  std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
  std::shared_ptr<transport::Connection> connection_;
};

// Connections of one listener, in the order in which they came.
class Entrance {
 public:
  explicit Entrance(transport::Tcp& tcp)
      : listener_(std::move(*tcp.listen({"127.0.0.1", 0}, [this](std::shared_ptr<transport::Connection> connection) {
          const std::lock_guard lock(mutex_);
          came_.push_back(std::move(connection));
          arrived_.notify_all();
        }))) {}
  Peer next() {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return !came_.empty(); });
    auto first = std::move(came_.front());
    came_.pop_front();
    return Peer(std::move(first));
  }
  std::uint16_t port() const { return listener_->port(); }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<std::shared_ptr<transport::Connection>> came_;
  std::unique_ptr<transport::Listener> listener_;
};

fleet::JoinToken token_for(std::uint16_t port) {
  fleet::JoinToken token;
  token.addresses = {"127.0.0.1"};
  token.port = port;
  token.plaintext = true;
  token.run = 1;
  return token;
}

wire::Hello hello() {
  wire::Hello hello;
  hello.protocol = wire::kProtocolVersion;
  hello.name = "there/cpu";
  hello.machine = "there";
  hello.device = "cpu";
  return hello;
}

// Of `connections` for data, which come in any order, one ends first.
void hear_that_the_run_is_done(std::uint32_t connections) {
  transport::Tcp tcp({.io_threads = 1, .plaintext = true, .identity = {}});
  Entrance head_listener(tcp);
  const fleet::JoinToken token = token_for(head_listener.port());
  std::promise<Status> ended;
  WorkerHostOptions options;
  options.hello = hello();
  options.data_connections = [=](const transport::PeerIdentity&) { return connections; };
  options.prepare = [](const wire::RunSpec&, const SharedBytes&) -> Result<PreparedWorker> {
    return Error{ErrorCode::internal, "nothing to prepare", ""};
  };
  WorkerHostEvents events;
  events.ended = [&](Status status) { ended.set_value(std::move(status)); };
  WorkerHost worker(options, std::move(events));
  worker.run_remote(tcp, {}, token);

  Peer control = head_listener.next();
  control.hear<wire::Proof>();
  control.say(wire::ProofReply{proof_mac(token, "head", control.identity(), {}, Side::head)});
  control.say(wire::Admitted{.worker = 1, .fence = 1});
  std::vector<Peer> data;
  std::set<std::uint32_t> numbers;
  for (std::uint32_t i = 0; i < connections; ++i) {
    const auto attach = data.emplace_back(head_listener.next()).hear<wire::Attach>();
    numbers.insert(attach.number);
    EXPECT_LT(attach.number, connections);
    EXPECT_EQ(attach.count, connections);
  }
  EXPECT_EQ(numbers.size(), connections);
  data.back().close();
  control.say(wire::Bye{"done", {}, {}, {}});
  control.close();
  const Status status = ended.get_future().get();
  EXPECT_TRUE(status) << test::message(status);
}

TEST(Farewell, AWorkerWhoseDataConnectionEndsFirstStillHearsThatTheRunIsDone) { hear_that_the_run_is_done(1); }

TEST(Farewell, AWorkerOneOfWhoseDataConnectionsEndsFirstStillHearsThatTheRunIsDone) { hear_that_the_run_is_done(3); }

TEST(Farewell, AWorkerWhoseDataConnectionEndsFirstStillLeavesOfItsOwnWill) {
  transport::Tcp tcp({.io_threads = 1, .plaintext = true, .identity = {}});
  Scene scene;
  std::promise<void> first_step;
  scene.recorder.on_step = [&](const report::StepDone& step) {
    if (step.step == 0) first_step.set_value();
  };
  const auto listener = *tcp.listen({"127.0.0.1", 0}, [&](std::shared_ptr<transport::Connection> connection) {
    scene.host->connections().accept(std::move(connection));
  });
  const fleet::JoinToken token = token_for(listener->port());
  const auto dial = [&] {
    std::promise<std::shared_ptr<transport::Connection>> made;
    tcp.connect({{"127.0.0.1", token.port}}, {}, std::chrono::seconds(10),
                [&](Result<std::shared_ptr<transport::Connection>> result) { made.set_value(std::move(*result)); });
    return Peer(made.get_future().get());
  };
  scene.host->start();

  Peer control = dial();
  control.say(hello());
  control.say(wire::Proof{proof_mac(token, "join", control.identity(), {}, Side::joiner)});
  control.hear<wire::RunSpec>();
  const auto entries = scene.model->layout().entries();
  control.say(wire::Ready{{entries.begin(), entries.end()}, scene.train->fingerprint(), scene.test->fingerprint()});
  const std::uint64_t fence = control.hear<wire::Admitted>().fence;
  Peer data = dial();
  data.say(wire::Attach{fence, proof_mac(token, "lane", data.identity(), {}, Side::joiner)});
  Peer twice = dial();
  twice.say(wire::Attach{fence, proof_mac(token, "lane", twice.identity(), {}, Side::joiner)});
  EXPECT_EQ(twice.hear<wire::Bye>().code, "lost");
  data.close();
  control.say(wire::Bye{"leave", {}, {}, {}}, fence);
  control.close();
  scene.add_worker("here/cpu");
  const Status status = scene.wait();
  ASSERT_TRUE(status) << test::message(status);
  const auto& seen = scene.recorder.workers;
  const auto end = std::find_if(seen.begin(), seen.end(), [](const report::WorkerChanged& event) {
    return event.worker == "there/cpu" && event.change != "joined";
  });
  ASSERT_NE(end, seen.end());
  EXPECT_EQ(end->change, "left") << end->reason;
  scene.host.reset();
}

}  // namespace
}  // namespace motley::runtime
