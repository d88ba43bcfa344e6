#include "runtime/train.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <future>

#include "runtime/coordinator_host.h"
#include "runtime/inputs.h"
#include "runtime/run.h"
#include "runtime/worker_host.h"
#include "transport/addresses.h"
#include "transport/inproc/inproc.h"

namespace motley::runtime {
namespace {

namespace fs = std::filesystem;

std::string hex(std::uint64_t value) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(value));
  return text.data();
}

CoordinatorHostOptions host_options(const Run& run) {
  CoordinatorHostOptions host;
  engine::CoordinatorOptions& e = host.engine;
  e.run = run.token.run;
  e.incarnation = run.incarnation;
  e.seed = run.config.seed;
  e.train_samples = run.inputs.train->size();
  e.test_samples = run.inputs.test != nullptr ? run.inputs.test->size() : 0;
  e.global_batch = run.config.global_batch;
  e.steps = run.steps;
  e.grain = grain_of(run.config, run.initial.acts_on_groups);
  e.evaluate_every = run.config.evaluate_every;
  e.min_workers = run.config.min_workers;
  e.shares = run.config.shares;
  e.config = to_toml(run.config);
  e.model_file = run.inputs.file;
  if (!run.inputs.file.empty()) e.model_sha256 = transport::sha256_hex(run.inputs.file.bytes());
  e.train_fingerprint = run.inputs.train->fingerprint();
  if (run.inputs.test != nullptr) e.test_fingerprint = run.inputs.test->fingerprint();
  host.token = run.token;
  host.own_spki = run.identity.spki;
  host.run_dir = run.dir->path().string();
  host.checkpoint_seconds = run.config.checkpoint_seconds;
  host.has_accuracy = run.config.model_loss != "mse";
  host.checkpoint_base.layout = run.initial.layout;
  host.checkpoint_base.run = run.token.run;
  host.checkpoint_base.incarnation = run.incarnation;
  host.checkpoint_base.config = e.config;
  host.checkpoint_base.model_kind = run.config.model_kind;
  host.checkpoint_base.frozen = run.initial.frozen;
  return host;
}

observe::RunStarted started_event(const Run& run) {
  observe::RunStarted event;
  event.run = hex(run.token.run);
  event.name = run.name;
  event.directory = run.dir->path().string();
  event.parameters = run.initial.layout.parameters();
  event.global_batch = run.config.global_batch;
  event.seed = run.config.seed;
  event.steps = run.steps;
  event.steps_per_epoch = run.steps_per_epoch;
  event.samples = run.inputs.train->size();
  event.first_step = run.server->version();
  if (run.options.token_file.empty()) event.join = cluster::to_text(run.token);
  event.token_file = run.options.token_file;
  event.plaintext = run.options.plaintext;
  return event;
}

std::unique_ptr<WorkerHost> local_worker(Run& run, const Device& device, std::size_t number, CoordinatorHost& host) {
  const std::string machine = run.options.name.empty() ? transport::machine_name() : run.options.name;
  WorkerHostOptions options;
  options.hello = hello_for(device, machine, number);
  options.prepare = [&run, device](const wire::RunSpec&, const SharedBytes&) {
    return prepare_worker(run.provider, run.inputs, device.name, run.options.threads);
  };
  WorkerHostEvents events;
  events.note = [&host](const std::string& text) { host.observe([text](observe::Observer& o) { o.note(text); }); };
  auto worker = std::make_unique<WorkerHost>(std::move(options), std::move(events));
  auto [mine, theirs] = transport::make_inproc_pair();
  host.add_local(hello_for(device, machine, number), std::move(theirs));
  worker->run_local(std::move(mine));
  return worker;
}

}  // namespace

Result<transport::Endpoint> parse_endpoint(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  transport::Endpoint endpoint;
  endpoint.host = colon == std::string::npos ? "" : text.substr(0, colon);
  if (endpoint.host.size() >= 2 && endpoint.host.front() == '[' && endpoint.host.back() == ']') {
    endpoint.host = endpoint.host.substr(1, endpoint.host.size() - 2);
  }
  const std::string port = colon == std::string::npos ? text : text.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), endpoint.port);
  if (error != std::errc{} || end != port.data() + port.size() || port.empty()) {
    return Error{ErrorCode::usage, "expected ADDRESS:PORT, found '" + text + "'", "0.0.0.0:7117"};
  }
  if (endpoint.host.empty()) endpoint.host = "0.0.0.0";
  return endpoint;
}

Status train(const TrainOptions& options, ModelProvider& provider, observe::Observer& observer, StopSource& stop) {
  Run run{options, provider, observer};
  for (const auto step : {&Run::open, &Run::load, &Run::make_server, &Run::make_identity}) {
    if (Status status = (run.*step)(); !status) return status;
  }

  std::promise<Status> ended;
  std::unique_ptr<CoordinatorHost> host;
  std::promise<void> host_ready;
  const std::shared_future<void> ready = host_ready.get_future().share();
  transport::TcpOptions tcp_options;
  tcp_options.plaintext = options.plaintext;
  tcp_options.identity = run.identity;
  transport::Tcp tcp(tcp_options);
  std::unique_ptr<transport::Listener> listener;
  const auto accept = [&host, ready](std::shared_ptr<transport::Connection> connection) {
    ready.wait();
    host->accept(std::move(connection));
  };
  if (Status status = run.start_listening(tcp, accept, listener); !status) return status;

  observer.run(started_event(run));
  host = std::make_unique<CoordinatorHost>(host_options(run), std::move(*run.server), std::move(*run.ledger), observer,
                                           [&ended](Status status) { ended.set_value(std::move(status)); });
  host_ready.set_value();
  host->start();
  std::vector<std::unique_ptr<WorkerHost>> workers;
  for (std::size_t i = 0; i < run.devices.size(); ++i) {
    std::size_t number = 0;
    for (std::size_t j = 0; j < i; ++j) number += run.devices[j].name == run.devices[i].name ? 1 : 0;
    workers.push_back(local_worker(run, run.devices[i], number, *host));
  }
  stop.on_request([&host] {
    host->observe([](observe::Observer& o) { o.note("finishing the open step; Ctrl-C again ends at once"); });
    host->stop();
  });
  Status status = ended.get_future().get();
  stop.on_request({});
  listener->close();
  return status;  // the workers go first, then the sockets and their threads, then the host that these call
}

}  // namespace motley::runtime
