#include "runtime/train.h"

#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "runtime/coordinator_host.h"
#include "runtime/inputs.h"
#include "runtime/worker_host.h"
#include "store/run_dir.h"
#include "transport/addresses.h"
#include "transport/inproc/inproc.h"

namespace motley::runtime {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kConfigBytesMax = 1U << 20;

std::uint64_t random_u64() {
  std::array<std::uint8_t, 8> bytes{};
  transport::random_bytes(bytes);
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

std::string hex(std::uint64_t value) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(value));
  return text.data();
}

std::string free_run_dir(const std::string& name) {
  for (int number = 1;; ++number) {
    const std::string candidate = "runs/" + name + "-" + std::to_string(number);
    if (!fs::exists(candidate)) return candidate;
  }
}

// Everything a run is made of, in the order in which it comes to be.
struct Run {
  const TrainOptions& options;
  ModelProvider& provider;
  observe::Observer& observer;

  RunConfig config{};
  std::string name{};
  std::optional<store::RunDir> dir{};
  ModelInputs inputs{};
  InitialState initial{};
  cluster::JoinToken token{};
  transport::Identity identity{};
  std::uint32_t incarnation = 0;
  std::uint64_t steps = 0, steps_per_epoch = 0;
  std::optional<ps::Server> server{};
  std::optional<store::LedgerWriter> ledger{};
  std::vector<Device> devices{};

  Status open();
  Status load();
  Status make_server();
  Status restore(ps::Snapshot& snapshot);
  Status make_token(std::uint16_t port, const std::string& host);
  Status start_listening(transport::Tcp& tcp, const transport::AcceptHandler& accept,
                         std::unique_ptr<transport::Listener>& listener);
  store::LedgerHeader ledger_header() const {
    return {token.run, config.seed, inputs.train->size(), config.global_batch, inputs.train->fingerprint()};
  }
};

Status Run::open() {
  Result<std::vector<Device>> chosen = choose_devices(provider, options.devices);
  if (!chosen) return chosen.error();
  devices = std::move(*chosen);
  if (options.resume && options.run_dir.empty()) {
    return Error{ErrorCode::usage, "--resume: which run?", "motley train --resume --run runs/fashion-cnn-1"};
  }
  if (!options.resume || !options.target.empty()) {
    Result<RunConfig> loaded = load_config(options.target, options.overrides);
    if (!loaded) return loaded.error();
    config = std::move(*loaded);
  }
  name =
      options.target.empty() ? fs::path(options.run_dir).filename().string() : fs::path(options.target).stem().string();
  const std::string path = options.run_dir.empty() ? free_run_dir(name) : options.run_dir;
  Result<store::RunDir> opened = store::RunDir::open(path, options.resume);
  if (!opened) return opened.error();
  dir.emplace(std::move(*opened));
  if (dir->has_run() && !options.resume) {
    return Error{ErrorCode::input, path + ": there is a run already",
                 "--resume goes on with it; --run DIR starts a new one elsewhere"};
  }
  if (options.resume) {
    Result<std::string> text = dir->read_file("run.toml", kConfigBytesMax);
    if (!text) return text.error();
    Result<RunConfig> kept = parse_config(*text, path + "/run.toml", options.overrides);
    if (!kept) return kept.error();
    config = std::move(*kept);
  }
  return {};
}

Status Run::load() {
  Result<ModelInputs> loaded = load_data(config, [this](const std::string& file, std::uint64_t done,
                                                        std::uint64_t total) { observer.download(file, done, total); });
  if (!loaded) return loaded.error();
  inputs = std::move(*loaded);
  inputs.config = &config;
  if (Status status =
          load_model_file(config, options.resume ? dir->path() / kModelFile : fs::path(config.model_file), inputs);
      !status) {
    return status;
  }
  if (config.global_batch > inputs.train->size()) {
    return Error{ErrorCode::input,
                 "train.global_batch: expected at most the " + std::to_string(inputs.train->size()) +
                     " samples of the training set, found " + std::to_string(config.global_batch),
                 "--set train.global_batch=256"};
  }
  Result<InitialState> state = provider.initial_state(inputs);
  if (!state) return state.error();
  initial = std::move(*state);
  steps_per_epoch = (inputs.train->size() + config.global_batch - 1) / config.global_batch;
  steps = config.steps > 0 ? config.steps : config.epochs * steps_per_epoch;
  return {};
}

// The state of the newest checkpoint, and over it the steps of the redo log as far as the ledger knows them.
Status Run::restore(ps::Snapshot& snapshot) {
  std::vector<std::string> warnings;
  Result<store::CheckpointContent> content = store::read_latest_checkpoint(dir->path(), warnings);
  for (const std::string& warning : warnings) observer.note(warning);
  if (!content) return content.error();
  if (const std::string what = difference(initial.layout, content->layout); !what.empty()) {
    return Error{ErrorCode::mismatch, "the checkpoint is of another model: " + what,
                 "resume with the model the run was started with"};
  }
  token.run = content->run;
  snapshot.version = content->step;
  snapshot.weights = std::move(content->weights);
  snapshot.optimizer = std::move(content->optimizer);
  return {};
}

Status Run::make_server() {
  ps::Snapshot snapshot{0, initial.weights, {}};
  if (options.resume) {
    if (Status status = restore(snapshot); !status) return status;
  } else {
    token.run = random_u64();
  }
  const std::uint64_t from = snapshot.version;
  Result<ps::Server> made = ps::Server::make(initial.layout, optimizer_spec(config), schedule_spec(config, steps),
                                             config.clip_norm, std::move(snapshot));
  if (!made) return made.error();
  server.emplace(std::move(*made));
  const fs::path ledger_file = dir->path() / "ledger";
  if (options.resume) {
    Result<store::Ledger> history = store::read_ledger(ledger_file);
    if (!history) return history.error();
    const std::uint64_t known = history->steps.empty() ? 0 : history->steps.back().step + 1;
    Result<std::uint64_t> reached =
        store::replay_redo(dir->path(), from, [&](std::uint64_t step, std::span<const SharedBytes> gradients) {
          if (step >= known || step >= steps) return Status(Error{ErrorCode::input, "the ledger ends here", ""});
          return server->redo(gradients);
        });
    (void)reached;  // a log that ends early costs the steps after it, which are done again
  }
  Result<store::LedgerWriter> writer = store::LedgerWriter::open(ledger_file, ledger_header());
  if (!writer) return writer.error();
  ledger.emplace(std::move(*writer));
  Result<std::uint32_t> next = dir->next_incarnation();
  if (!next) return next.error();
  incarnation = *next;
  if (options.resume) return ledger->append(store::LedgerRollback{server->version(), incarnation});
  if (!inputs.file.empty()) {
    const auto bytes = inputs.file.bytes();
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (Status status = dir->write_file(kModelFile, text); !status) return status;
  }
  return dir->write_file("run.toml", to_toml(config));
}

// A run keeps its key, secret and port, so that its workers find it again after a restart.
Status Run::make_token(std::uint16_t port, const std::string& host) {
  token.port = port;
  token.addresses =
      host.empty() || host == "0.0.0.0" || host == "::" ? transport::local_addresses() : std::vector<std::string>{host};
  if (token.addresses.size() > cluster::JoinToken::kAddressesMax)
    token.addresses.resize(cluster::JoinToken::kAddressesMax);
  const std::string text = cluster::to_text(token);
  if (Status status = dir->write_file("token", text + "\n", true); !status) return status;
  if (options.token_file.empty()) return {};
  const fs::path file(options.token_file);
  const fs::path fresh = file.string() + ".new";
  std::error_code code;
  {
    std::ofstream out(fresh);
    fs::permissions(fresh, fs::perms::owner_read | fs::perms::owner_write, code);
    out << text << "\n";
    out.flush();
    if (!out || code)
      return Error{ErrorCode::io, options.token_file + ": the token cannot be written there",
                   "check the directory of --token-file"};
  }
  fs::rename(fresh, file, code);
  if (code)
    return Error{ErrorCode::io, options.token_file + ": " + code.message(), "check the directory of --token-file"};
  return {};
}

Status Run::start_listening(transport::Tcp& tcp, const transport::AcceptHandler& accept,
                            std::unique_ptr<transport::Listener>& listener) {
  transport::Endpoint endpoint{"0.0.0.0", kDefaultPort};
  bool fixed = !options.listen.empty();
  if (fixed) {
    Result<transport::Endpoint> parsed = parse_endpoint(options.listen);
    if (!parsed) return parsed.error();
    endpoint = *parsed;
  } else if (options.resume && token.port != 0) {
    endpoint.port = token.port;
  }
  Result<std::unique_ptr<transport::Listener>> listening = tcp.listen(endpoint, accept);
  if (!listening && !fixed && listening.error().code == ErrorCode::busy) {
    endpoint.port = 0;
    listening = tcp.listen(endpoint, accept);
  }
  if (!listening) return listening.error();
  listener = std::move(*listening);
  return make_token(listener->port(), endpoint.host);
}

Status identity_of(Run& run) {
  const TrainOptions& options = run.options;
  if (options.resume) {
    Result<std::string> pem = run.dir->read_file("key.pem", kConfigBytesMax);
    Result<std::string> text = run.dir->read_file("token", kConfigBytesMax);
    if (pem && text) {
      Result<transport::Identity> kept = transport::identity_from_pem(std::move(*pem));
      Result<cluster::JoinToken> token = cluster::parse_token(*text);
      if (kept && token && token->run == run.token.run) {
        run.identity = std::move(*kept);
        run.token = std::move(*token);
        run.token.plaintext = options.plaintext;
        return {};
      }
    }
  }
  run.identity = transport::make_identity();
  run.token.spki = run.identity.spki;
  run.token.plaintext = options.plaintext;
  run.token.id = random_u64();
  transport::random_bytes(run.token.secret);
  return run.dir->write_file("key.pem", run.identity.pem, true);
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
  for (const auto step : {&Run::open, &Run::load, &Run::make_server}) {
    if (Status status = (run.*step)(); !status) return status;
  }
  if (Status status = identity_of(run); !status) return status;

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
    if (host != nullptr) host->accept(std::move(connection));
  };
  if (Status status = run.start_listening(tcp, accept, listener); !status) {
    return status;
  }

  PersisterEvents persister_events;
  persister_events.checkpoint = [&](std::uint64_t step, const fs::path& path) {
    host->observe([step, path](observe::Observer& o) { o.checkpoint(step, path.string()); });
  };
  persister_events.error = [&](const Error& error) {
    host->observe([error](observe::Observer& o) { o.error(error); });
  };
  auto persister = std::make_unique<Persister>(run.dir->path(), std::move(*run.ledger), std::move(persister_events));
  observer.run(started_event(run));
  host = std::make_unique<CoordinatorHost>(host_options(run), std::move(*run.server), std::move(persister), observer,
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
  workers.clear();
  host.reset();
  return status;
}

}  // namespace motley::runtime
