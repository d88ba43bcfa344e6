// The side that measures: connects as a joining machine would, with one connection for control and one for data.

#include <algorithm>
#include <atomic>
#include <thread>

#include "bench/flood.h"
#include "bench/link.h"
#include "bench/link_lane.h"
#include "bench/meter.h"
#include "runtime/auth.h"
#include "runtime/head/head_listener.h"
#include "transport/tcp/tcp.h"

namespace motley::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using transport::Priority;

constexpr milliseconds kConnectTime{5000};
constexpr milliseconds kAnswerTime{10'000};
constexpr milliseconds kPingEvery{10};
constexpr seconds kLongestPhase{25};  // where frames come one a second; shorter than a flood may be
constexpr double kIdleSeconds = 1;
constexpr seconds kDrainTime{30};          // what is in queues and buffers when a phase ends
constexpr std::uint64_t kFramesLeast = 4;  // of each direction, to tell a rate from
constexpr double kWarmUp = 0.25;           // of a phase: until TCP has found the rate

class Measurement {
 public:
  Measurement(const LinkOptions& options, runtime::StopSource& stop)
      : options_(options),
        stop_(stop),
        identity_(transport::make_identity()),
        tcp_(runtime::tcp_options(options_.token, identity_)) {
    stop_.on_request([this] { shared_.interrupt(); });
  }
  Measurement(const Measurement&) = delete;
  Measurement& operator=(const Measurement&) = delete;
  ~Measurement() {
    stop_.on_request({});
    for (const auto& lane : {control_, data_}) {
      if (lane != nullptr) lane->close();
    }
  }

  Result<LinkReport> run(const std::function<void(const std::string&)>& note);

 private:
  struct Mark {
    Flow up, down;
  };
  [[nodiscard]] bool broken() const;  // REQUIRES the mutex of shared_ held
  [[nodiscard]] Error what_failed(const std::string& otherwise);
  Result<std::shared_ptr<Lane>> open_lane();
  Status wait_answer(const std::function<bool()>& holds, milliseconds time, const std::string& otherwise);
  Result<Phase> phase(bool up, bool down, double seconds_long);
  Status load(bool up, bool down, double seconds_long, Mark& first, Mark& last);
  Status drain(bool up, bool down);
  Mark mark();

  const LinkOptions& options_;
  runtime::StopSource& stop_;
  const transport::Identity identity_;
  Shared shared_;
  std::shared_ptr<Lane> control_, data_;
  transport::Tcp tcp_;  // ends before what its threads call
};

Error Measurement::what_failed(const std::string& otherwise) {
  const std::lock_guard lock(shared_.mutex);
  if (shared_.interrupted) return {ErrorCode::interrupted, "interrupted", ""};
  for (const auto& lane : {control_, data_}) {
    if (lane != nullptr && lane->failure) return *lane->failure;
  }
  return {ErrorCode::network, otherwise, "try again; motley doctor on both machines"};
}

bool Measurement::broken() const {
  return shared_.interrupted || (control_ != nullptr && control_->failure) || (data_ != nullptr && data_->failure);
}

Status Measurement::wait_answer(const std::function<bool()>& holds, milliseconds time, const std::string& otherwise) {
  shared_.wait_until(Clock::now() + time, [&] { return broken() || holds(); });
  {
    const std::lock_guard lock(shared_.mutex);
    if (!broken() && holds()) return {};
  }
  return what_failed(otherwise);
}

Result<std::shared_ptr<Lane>> Measurement::open_lane() {
  struct Dialled {
    std::optional<Result<std::shared_ptr<transport::Connection>>> result;
  };
  std::optional<transport::Digest> pin;
  if (!options_.token.plaintext) pin = options_.token.spki;
  const auto dialled = std::make_shared<Dialled>();
  tcp_.connect(runtime::endpoints(options_.token), pin, kConnectTime, [this, dialled](auto result) {
    const std::lock_guard lock(shared_.mutex);
    dialled->result = std::move(result);
    shared_.changed.notify_all();
  });
  if (!shared_.wait_until(Clock::now() + 2 * kConnectTime, [&] { return dialled->result.has_value(); }))
    return what_failed("no answer from any address of the token");
  if (!*dialled->result) {
    Error error = dialled->result->error();
    if (error.code == ErrorCode::network)
      error.hint = "is motley bench link still running there? then: motley doctor there";
    return error;
  }
  auto lane = std::make_shared<Lane>(shared_, options_.token, identity_.spki);
  const std::shared_ptr<transport::Connection> connection = **dialled->result;
  lane->begin(connection);
  connection->start(lane);
  return lane;
}

Measurement::Mark Measurement::mark() {
  const std::lock_guard lock(shared_.mutex);
  return {data_->up, data_->down};
}

Status Measurement::load(bool up, bool down, double seconds_long, Mark& first, Mark& last) {
  const Clock::time_point began = Clock::now();
  const auto after = [began](double s) {
    return began + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s));
  };
  const auto enough = [&] {
    const Mark now = mark();
    return (!up || now.up.frames >= first.up.frames + kFramesLeast) &&
           (!down || now.down.frames >= first.down.frames + kFramesLeast);
  };
  for (bool warm = false;;) {
    const auto next_ping = Clock::now() + kPingEvery;
    shared_.wait_until(next_ping, [this] { return broken(); });
    if (const std::lock_guard lock(shared_.mutex); broken()) break;
    const Clock::time_point now = Clock::now();
    if (!warm && now >= after(kWarmUp * seconds_long)) {
      // Without a frame there is no time from which to count.
      const Mark here = mark();
      warm = (!up || here.up.frames > first.up.frames) && (!down || here.down.frames > first.down.frames);
      if (warm) first = here;
    }
    if ((warm && now >= after(seconds_long) && enough()) || now > began + kLongestPhase) {
      last = mark();
      return {};
    }
    control_->ping(Priority::control);
  }
  return what_failed("the other side fell silent while it was measured");
}

Status Measurement::drain(bool up, bool down) {
  if (down) data_->say({Verb::stop, 0});
  if (up) data_->ping(Priority::gradients);
  const auto drained = [&] { return (!down || data_->done) && data_->pings.empty(); };
  Status status = wait_answer(drained, kDrainTime, "the other side fell silent at the end of a measurement");
  const std::lock_guard lock(shared_.mutex);
  data_->done = false;
  data_->pings.clear();
  return status;
}

double mbit_per_s(const Flow& first, const Flow& last) {
  const double took_s = std::chrono::duration<double>(last.at - first.at).count();
  return took_s > 0 ? static_cast<double>(last.bytes - first.bytes) * 8e-6 / took_s : 0;
}

Result<Phase> Measurement::phase(bool up, bool down, double seconds_long) {
  const Meter meter;
  Mark first = mark(), last;
  std::atomic<bool> sending{up};
  std::thread sender;
  if (down) data_->say({Verb::flood, 0});
  if (up) {
    sender = std::thread([this, &sending] {
      flood_link(data_->connection(), options_.token.run, kLinkWindowBytes, [&sending] { return sending.load(); });
    });
  }
  Status status = load(up, down, seconds_long, first, last);
  const double cores = meter.processor_s() / meter.wall_s();
  sending = false;
  if (sender.joinable()) sender.join();
  if (status && (up || down)) status = drain(up, down);
  if (!status) return status.error();
  static_cast<void>(wait_answer([this] { return control_->pings.empty(); }, kAnswerTime, ""));
  const std::lock_guard lock(shared_.mutex);
  Phase result;
  if (up) result.up_mbit_s = mbit_per_s(first.up, last.up);
  if (down) result.down_mbit_s = mbit_per_s(first.down, last.down);
  result.processor_cores = cores;
  result.round_trips = summarise(std::move(control_->trips_ms), control_->pings.size());
  control_->trips_ms.clear();
  control_->pings.clear();
  return result;
}

Result<LinkReport> Measurement::run(const std::function<void(const std::string&)>& note) {
  for (std::shared_ptr<Lane>* lane : {&control_, &data_}) {
    Result<std::shared_ptr<Lane>> opened = open_lane();
    if (!opened) return opened.error();
    *lane = std::move(*opened);
    const auto proven = [lane] { return (*lane)->proven; };
    if (Status status = wait_answer(proven, kAnswerTime, "the other side does not answer the proof"); !status)
      return status.error();
  }
  control_->say({Verb::facts, 0});
  if (Status status = wait_answer([this] { return control_->facts.has_value(); }, kAnswerTime,
                                  "the other side does not say what its interface is");
      !status)
    return status.error();

  LinkReport report;
  const transport::PeerIdentity& peer = control_->connection().peer();
  report.peer = peer.address;
  report.cipher = peer.cipher;
  report.figures.near = transport::interface_towards(peer);
  {
    const std::lock_guard lock(shared_.mutex);
    report.figures.far = *control_->facts;
  }
  struct Step {
    const char* name;
    bool up, down;
    Phase* phase;
  };
  LinkFigures& figures = report.figures;
  Phase idle;
  for (const Step& step : {Step{"round trips", false, false, &idle}, Step{"up", true, false, &figures.up},
                           Step{"down", false, true, &figures.down}, Step{"both at once", true, true, &figures.both}}) {
    note(std::string("measuring: ") + step.name);
    Result<Phase> phase = this->phase(
        step.up, step.down, step.up || step.down ? options_.seconds : std::min(kIdleSeconds, options_.seconds));
    if (!phase) return phase.error();
    *step.phase = *phase;
  }
  figures.idle = idle.round_trips;
  return report;
}

}  // namespace

Result<LinkReport> measure_link(const LinkOptions& options, const std::function<void(const std::string&)>& note,
                                runtime::StopSource& stop) {
  Measurement measurement(options, stop);
  return measurement.run(note);
}

}  // namespace motley::bench
