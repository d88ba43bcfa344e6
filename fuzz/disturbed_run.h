#pragma once
// A training run in memory: both engines, a computation that adds up small numbers, and a network that does what the
// input says to what goes one way: changed fields, bytes and headers, frames that are dropped, repeated, overtaken, or
// come out of nowhere, machines that leave and come back, time that jumps. What a receiver gets has passed the
// checks that every frame passes on its way off the wire. One thread.

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "engine/head/coordinator.h"
#include "engine/worker/worker.h"
#include "frame_changes.h"

namespace motley::fuzz {

inline Layout layout_of(std::int64_t large) {
  std::vector<LayoutEntry> entries(4);
  entries[0].name = "weight";
  entries[0].shape = {large};
  entries[1].name = "bias";
  entries[1].shape = {10};
  entries[2].name = "norm.running_mean";
  entries[2].shape = {4};
  entries[2].kind = TensorKind::running_mean;
  entries[2].momentum = 0.5F;
  entries[3].name = "norm.running_var";
  entries[3].shape = {4};
  entries[3].kind = TensorKind::running_var;
  entries[3].momentum = 0.5F;
  return *Layout::make(std::move(entries));
}

inline SharedBytes filled(std::size_t elements, float value) {
  const std::vector<float> values(elements, value);
  return SharedBytes::copy_of(std::as_bytes(std::span(values)));
}

class Run;

/// One worker: the engine and a computation that takes as long as the input says.
class Machine final : public engine::WorkerOutput {
 public:
  Machine(Run& run, std::size_t number) : run_(run), number_(number), worker_(options(), *this) {}

  void connect();
  void lose();
  /// Goes on with what it computes, one event at a time.
  void compute();
  /// What it computes, it cannot.
  void fail();

  void send(wire::Frame frame, engine::Lane) override;
  void prepare(const wire::RunSpec&, const SharedBytes&) override { preparing_ = true; }
  void start_task(engine::TaskOrder order) override {
    MOTLEY_ASSERT(!task_);
    // Where a real one would run out of memory, or past the end of its data.
    const std::uint64_t start = order.kind == PassKind::train ? order.pass_first : 0;
    MOTLEY_ASSERT(order.count > 0 && order.count <= 64 && order.first <= 64 && start + order.first + order.count <= 64);
    MOTLEY_ASSERT(order.limit > 0 && order.limit <= order.count);
    limit_ = order.limit;
    done_ = 0;
    abandoned_ = begun_ = false;
    task_ = std::move(order);
  }
  void weights_arrived(std::uint64_t, ChunkId chunk, SharedBytes weights) override {
    MOTLEY_ASSERT(weights.size() == layout_->chunks()[chunk].elements * sizeof(float));
  }
  void limit_task(std::uint64_t number, std::uint64_t count) override {
    if (!task_ || task_->number != number) return;
    abandoned_ = count == 0;
    if (count > 0) {
      MOTLEY_ASSERT(count <= task_->count);
      if (!begun_) limit_ = std::max(count, done_);
      limits_.push_back(limit_);
    }
  }
  void finish_early(std::uint64_t) override { limit_ = std::max<std::uint64_t>(done_, 1); }
  void admitted(std::uint64_t) override {}
  void make_steps(engine::DelegatedSteps) override {}
  void end_steps(std::uint64_t) override {}
  void step_done(std::uint64_t, std::uint64_t) override {}
  void disconnect(bool, const Error& why) override {
    MOTLEY_ASSERT(why.message.size() < 100000);
    closing_ = true;
  }

  engine::SessionId session = 0;
  std::deque<wire::Frame> inbox;
  [[nodiscard]] engine::Worker& worker() { return worker_; }
  [[nodiscard]] std::size_t number() const { return number_; }

 private:
  static engine::WorkerOptions options() { return {}; }
  void finish(bool whole);

  Run& run_;
  std::size_t number_;
  engine::Worker worker_;
  std::optional<Layout> layout_;
  bool preparing_ = false, closing_ = false;
  std::optional<engine::TaskOrder> task_;
  std::uint64_t limit_ = 0, done_ = 0;
  std::deque<std::uint64_t> limits_;
  bool abandoned_ = false, begun_ = false;
};

enum class Towards : std::uint8_t { coordinator, workers };

class Run final : public engine::CoordinatorOutput {
 public:
  static constexpr std::uint64_t kTrain = 40, kTest = 8;
  static constexpr std::size_t kMachines = 3;
  static constexpr std::size_t kRoundsMax = 3000;

  Run(std::span<const std::uint8_t> input, Towards disturbed) : choices_(input), disturbed_(disturbed) {
    const std::uint8_t first = choices_.byte();
    layout_ = std::make_unique<Layout>(layout_of(first % 2 == 0 ? 100 : 20000));
    engine::CoordinatorOptions o;
    o.run = 7;
    o.train_samples = kTrain;
    o.test_samples = kTest;
    o.global_batch = 16;
    o.steps = 12;
    o.evaluate_every = 3;
    o.seed = 1;
    o.config = "[train]";
    if (first % 4 >= 2) o.gradients = o.weights = codec::CodecId::int8;
    o.train_fingerprint = "train";
    o.test_fingerprint = "test";
    ps::Snapshot start;
    for (const Chunk& chunk : layout_->chunks()) start.weights.push_back(filled(chunk.elements, 1));
    ps::OptimizerSpec optimizer;
    optimizer.groups.resize(1);
    coordinator_ = std::make_unique<engine::Coordinator>(
        o, *ps::Server::make(*layout_, optimizer, {}, first % 8 >= 4 ? 1.0 : 0.0, start), *this);
    coordinator_->start(now);
    for (std::size_t i = 0; i < kMachines; ++i) machines_.push_back(std::make_unique<Machine>(*this, i));
  }

  void go() {
    for (const auto& machine : machines_) machine->connect();
    for (std::size_t rounds = 0; !choices_.empty() && rounds < kRoundsMax;) {
      const std::uint8_t what = choices_.byte();
      rounds += 1;
      disturb(what & 15U);
      for (unsigned n = what >> 4U; n-- > 0; ++rounds) go_on();
    }
    for (int i = 0; i < 100; ++i) go_on();
  }

  void send(engine::SessionId session, wire::Frame frame, engine::Lane) override {
    if (Machine* to = machine_of(session)) to->inbox.push_back(std::move(frame));
  }
  void close(engine::SessionId session, const wire::Bye&) override {
    if (Machine* of = machine_of(session)) of->session = 0;  // what was sent still comes, the Bye among it
  }
  void worker_changed(const engine::WorkerChange&) override {}
  void warning(std::string text) override { MOTLEY_ASSERT(!text.empty()); }
  void step_closed(const engine::StepClosed& step) override {
    std::uint64_t covered = 0;
    for (const engine::CommittedRange& range : step.ranges) {
      MOTLEY_ASSERT(range.first == covered);
      covered += range.count;
    }
    MOTLEY_ASSERT(covered == step.samples);
  }
  void planned(const engine::Planned&) override {}
  void evaluated(const engine::Evaluated&) override {}
  void finished() override {}
  void failed(Error) override {}

  void session_opened(Machine& of) {
    of.session = ++sessions_;
    wire::Hello hello;
    hello.name = "machine" + std::to_string(of.number());
    coordinator_->session_opened(of.session, hello, engine::Locality::network, now);
  }
  void session_closed(engine::SessionId session) {
    std::erase_if(outbox_, [&](const auto& sent) { return sent.first == session; });
    coordinator_->session_closed(session, "the network", now);
  }
  void to_coordinator(engine::SessionId session, wire::Frame frame) { outbox_.emplace_back(session, std::move(frame)); }

  Time now = std::chrono::seconds(1);
  [[nodiscard]] const Layout& layout() const { return *layout_; }

 private:
  Machine* machine_of(engine::SessionId session) {
    const auto found = std::ranges::find_if(machines_, [&](const auto& m) { return m->session == session; });
    return found == machines_.end() ? nullptr : found->get();
  }

  /// Everybody gets a frame, computes a little, and time passes.
  void go_on() {
    for (std::size_t i = 0; i < kMachines && !outbox_.empty(); ++i) deliver_to_coordinator();
    for (const auto& machine : machines_) {
      for (int i = 0; i < 4 && !machine->inbox.empty(); ++i) deliver_to(*machine);
      machine->compute();
    }
    pass(std::chrono::milliseconds(2));
  }

  void pass(Duration time) {
    now += time;
    coordinator_->tick(now);
    for (const auto& machine : machines_) machine->worker().tick(now);
  }

  void deliver_to_coordinator() {
    auto [session, frame] = std::move(outbox_.front());
    outbox_.pop_front();
    if (sound(frame)) return coordinator_->session_frame(session, frame, now);
    if (Machine* of = machine_of(session)) of->lose();
  }
  void deliver_to(Machine& machine) {
    const wire::Frame frame = std::move(machine.inbox.front());
    machine.inbox.pop_front();
    if (sound(frame)) return machine.worker().frame(frame, now);
    machine.lose();
  }
  static bool sound(const wire::Frame& frame) {
    const wire::FrameHeader& header = frame.header;
    if (wire::is_segmented(header.type) && std::uint64_t{header.offset} + header.length > header.total) return false;
    return wire::decode_header(wire::encode_header(header), wire::kControlBytesMax).ok() &&
           header.length == frame.body.size();
  }

  template <class Item>
  static void to_the_end(std::deque<Item>& items, std::size_t at) {
    std::rotate(items.begin() + static_cast<std::ptrdiff_t>(at), items.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                items.end());
  }

  void disturb(unsigned how) {
    if (how == 0) return;
    if (how == 1) return pass(std::chrono::milliseconds(40) * choices_.byte());
    Machine& machine = *machines_[choices_.below(kMachines)];
    if (how == 2) return misfortune(machine);
    // Of the frames that are under way, one.
    wire::Frame* frame = nullptr;
    std::size_t at = choices_.byte();
    const bool up = disturbed_ == Towards::coordinator;
    const std::size_t under_way = up ? outbox_.size() : machine.inbox.size();
    if (how == 3) return invent(machine);
    if (under_way == 0) return;
    at = at < 128 ? 0 : at % under_way;
    frame = up ? &outbox_[at].second : &machine.inbox[at];
    switch (how) {
      case 4:  // dropped
        up ? void(outbox_.erase(outbox_.begin() + static_cast<std::ptrdiff_t>(at)))
           : void(machine.inbox.erase(machine.inbox.begin() + static_cast<std::ptrdiff_t>(at)));
        return;
      case 5:  // repeated
        up ? outbox_.push_back(outbox_[at]) : machine.inbox.push_back(machine.inbox[at]);
        return;
      case 6:  // overtaken by all others
        up ? to_the_end(outbox_, at) : to_the_end(machine.inbox, at);
        return;
      case 7:
      case 8:
        return change_header(choices_, *frame);
      case 9:
        return change_body(choices_, *frame);
      default:
        return change_content(choices_, *frame);
    }
  }

  void misfortune(Machine& machine) {
    switch (choices_.below(4)) {
      case 0:
        return machine.lose();
      case 1:
        return machine.worker().leave(now);
      case 2:
        return machine.worker().step_aside(now);
      default:
        return machine.fail();
    }
  }

  void invent(Machine& machine) {
    wire::Message message = empty_message(choices_.below(std::variant_size_v<wire::Message>),
                                          std::make_index_sequence<std::variant_size_v<wire::Message>>());
    for (std::size_t n = choices_.below(8); n-- > 0;) change_a_field(choices_, message);
    wire::FrameHeader header;
    header.run = 7;
    header.fence = std::uint64_t{1} << 32 | machine.session;
    wire::Frame frame = wire::seal(header, wire::encode(message));
    if (disturbed_ == Towards::workers) return machine.inbox.push_front(std::move(frame));
    if (machine.session != 0) outbox_.emplace_front(machine.session, std::move(frame));
  }

  Choices choices_;
  Towards disturbed_;
  std::unique_ptr<Layout> layout_;
  std::unique_ptr<engine::Coordinator> coordinator_;
  std::vector<std::unique_ptr<Machine>> machines_;
  std::deque<std::pair<engine::SessionId, wire::Frame>> outbox_;
  engine::SessionId sessions_ = 0;
};

inline void Machine::connect() {
  inbox.clear();
  preparing_ = closing_ = false;
  // A coordinator that says it is the one before may come with another model.
  layout_ = run_.layout();
  run_.session_opened(*this);
  worker_.connected(run_.now);
}

inline void Machine::lose() {
  if (const engine::SessionId lost = std::exchange(session, 0)) run_.session_closed(lost);
  worker_.disconnected("the network", run_.now);
  closing_ = true;
}

inline void Machine::send(wire::Frame frame, engine::Lane) {
  if (session != 0) run_.to_coordinator(session, std::move(frame));
}

inline void Machine::fail() {
  if (!task_) return;
  const std::uint64_t number = std::exchange(task_, std::nullopt)->number;
  limits_.clear();
  worker_.task_failed(number, {ErrorCode::memory, "too little", {}}, run_.now);
}

inline void Machine::compute() {
  const Time now = run_.now;
  if (closing_) {
    if (const engine::SessionId lost = std::exchange(session, 0)) run_.session_closed(lost);
    return connect();
  }
  if (preparing_) {
    preparing_ = false;
    return worker_.prepared(*layout_, {"train", "test"}, {.train = Run::kTrain, .test = Run::kTest}, std::nullopt, now);
  }
  if (!task_) return;
  const std::uint64_t number = task_->number;
  if (!limits_.empty()) {
    const std::uint64_t count = limits_.front();
    limits_.pop_front();
    return worker_.task_limited(number, count, now);
  }
  if (abandoned_) return finish(false);
  if (done_ < limit_) {
    done_ = std::min(limit_, done_ + 4);
    return worker_.task_progress(number, done_, now);
  }
  finish(true);
}

inline void Machine::finish(bool whole) {
  const engine::TaskOrder task = *std::exchange(task_, std::nullopt);
  limits_.clear();
  const std::uint64_t count = whole ? done_ : 0;
  const auto weight = static_cast<double>(count);
  if (whole && task.kind == PassKind::train) {
    worker_.task_begin(task.number, count, {weight, weight}, run_.now);
    for (ChunkId chunk = 0; chunk < layout_->chunks().size(); ++chunk)
      worker_.task_chunk(task.number, chunk, filled(layout_->chunks()[chunk].elements, 0.01F), run_.now);
  }
  worker_.task_finished(task.number, {count, weight, weight, count / 2, 4}, 0.001 * weight, 0, run_.now);
}

}  // namespace motley::fuzz
