#include "motley/run.h"

#include <mutex>
#include <optional>
#include <utility>

#include "api/provider.h"
#include "config/config.h"
#include "report/sink.h"
#include "runtime/head/train.h"
#include "runtime/inputs.h"
#include "runtime/pairing.h"
#include "runtime/stop.h"
#include "runtime/worker/join.h"
#include "runtime/worker/machine_key.h"
#include "runtime/worker/pair_with.h"
#include "tensor/flat_chunks.h"
#include "transport/addresses.h"

namespace motley {
namespace {

/// The program's events from the run's, and what is left at its end.
class ProgramSink final : public report::Sink {
 public:
  explicit ProgramSink(const Events& events) : events_(events) {}

  void take(const report::Event& event) override {
    std::visit([this](const auto& each) { told(each); }, event);
  }
  [[nodiscard]] const std::string& directory() const { return directory_; }
  [[nodiscard]] const report::ModelState& state() const { return state_; }

 private:
  void tell(const Event& event) const {
    if (events_) events_(event);
  }
  void told(const report::RunStarted& e) {
    directory_ = e.directory;
    tell(RunBegun{e.directory, e.join, e.pairing_code, e.addresses, e.parameters, e.global_batch, e.first_step,
                  e.steps});
  }
  void told(const report::CodeShown& e) { tell(CodeShown{e.code, e.addresses}); }
  void told(const report::WorkerChanged& e) {
    tell(WorkerChanged{e.worker, e.device, e.description, e.change, e.reason});
  }
  void told(const report::StepDone& e) {
    tell(StepMade{e.step, e.epoch, e.samples, e.loss, e.seconds, e.learning_rate});
  }
  void told(const report::EvalDone& e) { tell(Evaluated{e.step, e.epoch, e.samples, e.loss, e.scores}); }
  void told(const report::CheckpointWritten& e) { tell(CheckpointWritten{e.step, e.path}); }
  void told(const report::EvalPointReached& e) { state_ = e.state; }
  void told(const report::Failure& e) { tell(Failed{e.error}); }
  void told(const report::Note& e) { tell(Note{e.text}); }
  template <class Other>
  void told(const Other&) {}  // what displays show besides

  const Events& events_;
  std::string directory_;
  report::ModelState state_;
};

runtime::ResourcePolicy policy_of(const DeviceOptions& devices) { return {.duty = devices.duty, .nice = devices.nice}; }

Result<fleet::JoinToken> token_of(const std::string& invitation, const std::string& machine) {
  if (invitation.starts_with(fleet::JoinToken::kPrefix)) return fleet::parse_token(invitation);
  const std::size_t space = invitation.find(' ');
  const std::optional<std::string> code =
      space == std::string::npos ? std::nullopt : runtime::read_code(invitation.substr(space));
  if (!code) {
    return Error{ErrorCode::usage, "join(): expected a token, or the address and the code that the head shows",
                 "\"192.168.1.7 123456\""};
  }
  const Result<transport::Endpoint> head = runtime::head_endpoint(invitation.substr(0, space));
  if (!head) return head.error();
  return runtime::pair_with(*head, *code, machine, runtime::machine_identity(runtime::key_file()));
}

runtime::JoinEvents join_events(const Events& events, std::mutex& mutex) {
  const auto tell = [&events, &mutex](const Event& event) {
    const std::lock_guard lock(mutex);
    if (events) events(event);
  };
  runtime::JoinEvents told;
  told.note = [tell](const std::string& text) { tell(Note{text}); };
  told.link = [tell](const std::string& worker, const std::string& device, runtime::LinkChange link,
                     const std::string& why) {
    constexpr const char* kWords[] = {"joined", "left", "lost"};
    tell(WorkerChanged{worker, device, "", kWords[static_cast<int>(link)], why});
  };
  told.step = [tell](const std::string& worker, std::uint64_t version, std::uint64_t samples) {
    tell(Contributed{worker, version, samples});
  };
  return told;
}

}  // namespace

Stopper::Stopper() : source_(std::make_shared<runtime::StopSource>()) {}
void Stopper::request() { source_->request(); }

Result<Trained> train(Model& model, const RunOptions& options) {
  api::Provider provider(model);
  ProgramSink sink(options.events);
  runtime::TrainOptions train;
  train.target = options.name;
  train.text = config::to_toml(provider.config());
  train.overrides = options.settings;
  train.run_dir = options.directory;
  train.resume = options.resume;
  train.listen = options.listen;
  train.token_file = options.token_file;
  train.pair = options.pair;
  train.devices = options.devices.names;
  train.threads = options.devices.threads;
  train.name = options.machine;
  train.resource_policy = policy_of(options.devices);
  if (Status status = runtime::train(train, provider, sink, options.stop.source()); !status)
    return std::move(status).error();
  Trained trained{sink.directory(), sink.state().version, {}};
  if (!sink.state().weights.empty()) {
    trained.weights.resize(model.layout().flat_elements());
    put_chunks(model.layout(), sink.state().weights, trained.weights);
  }
  return trained;
}

Status join(Model& model, const std::string& invitation, const JoinOptions& options) {
  const std::string machine = options.machine.empty() ? transport::machine_name() : options.machine;
  Result<fleet::JoinToken> token = token_of(invitation, machine);
  if (!token) return std::move(token).error();
  api::Provider provider(model);
  runtime::JoinOptions join;
  join.token = std::move(*token);
  join.devices = options.devices.names;
  join.threads = options.devices.threads;
  join.name = machine;
  join.overrides = options.settings;
  join.resource_policy = policy_of(options.devices);
  std::mutex mutex;
  return runtime::join(join, provider, join_events(options.events, mutex), options.stop.source());
}

}  // namespace motley
