#include "runtime/head/head.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/format.h"
#include "runtime/head/head_listener.h"
#include "runtime/head/plan_modes.h"
#include "runtime/inputs.h"
#include "runtime/wire_cost.h"
#include "transport/addresses.h"
#include "transport/crypto.h"
#include "transport/inproc/inproc.h"

namespace motley::runtime {
namespace {

std::string hex(std::uint64_t value) { return formatted("%016llx", static_cast<unsigned long long>(value)); }

JournalOptions journal_options(const Run& run, const engine::CoordinatorOptions& e) {
  JournalOptions journal;
  journal.run_dir = run.dir->path().string();
  journal.checkpoint_seconds = run.config.checkpoint_seconds;
  journal.incarnation = run.incarnation;
  // Paused at eval points, a run has them where it evaluates; else an epoch is what people think in.
  if (e.pauses != modes::Pauses::never) journal.eval_point_every = e.evaluate_every;
  journal.local_steps = e.local_steps;
  if (e.local_steps == 0 && run.against_rounds(run.config).empty()) {
    journal.rounds_possible = run.config.rounds_steps;
    journal.outline = outline_of(run.config, run.inputs.train->size(), run.initial.layout.parameters());
  }
  journal.scores = run.initial.scores;
  journal.has_accuracy = run.config.model_kind == config::kSoftmaxKind ||
                         std::ranges::find(journal.scores, "accuracy") != journal.scores.end();
  journal.since_eval_point = run.since_eval_point;
  journal.checkpoint_base.layout = run.initial.layout;
  journal.checkpoint_base.run = run.token.run;
  journal.checkpoint_base.incarnation = run.incarnation;
  journal.checkpoint_base.config = e.config;
  journal.checkpoint_base.model_kind = run.config.model_kind;
  journal.checkpoint_base.frozen = run.initial.frozen;
  journal.checkpoint_base.updates_before = run.initial.optimizer.updates_before;
  return journal;
}

std::uint64_t secret_number() {
  std::array<std::uint8_t, sizeof(std::uint64_t)> bytes{};
  transport::random_bytes(bytes);
  return std::bit_cast<std::uint64_t>(bytes);
}

CoordinatorHostOptions host_options(const Run& run) {
  CoordinatorHostOptions host;
  engine::CoordinatorOptions& e = host.engine;
  e.run = run.token.run;
  e.incarnation = run.incarnation;
  e.seed = run.config.seed;
  e.train_samples = run.epoch_samples();
  e.test_samples = run.inputs.test != nullptr ? run.inputs.test->size() : 0;
  e.global_batch = run.sizes().batch;
  if (config::in_rounds(run.config)) {
    e.local_steps = run.config.rounds_steps;
    e.local_batch = run.config.global_batch;
    e.overlap = run.config.rounds_overlap == "next";
    e.rate_by_workers = config::rate_by_workers(run.config);
    e.owed = run.owed;
  }
  e.batch_changes = run.batch_changes;
  e.steps = run.sizes().steps;
  e.epochs = run.config.steps > 0 ? 0 : run.config.epochs;
  e.grain = grain_of(run.config, run.initial.acts_on_groups);
  e.rates_follow_evaluations = run.initial.rates_follow_evaluations;
  e.evaluate_every = run.sizes().evaluate_every;
  e.min_workers = run.config.min_workers;
  e.shares = run.config.shares;
  // Where a model draws random numbers, two kinds of devices come to different gradients.
  e.verify = {.part = run.config.verify,
              .secret = secret_number(),
              .alike = run.initial.draws,
              .probes = run.config.verify > 0};
  e.config = config::to_toml(run.config);
  e.gradients = codec::from_word(run.config.wire_gradients);
  e.weights = codec::from_word(run.config.wire_weights);
  if (config::leaves_codec_open(run.config)) {
    const bool computes = std::ranges::find(run.devices, "cpu", &Device::name) != run.devices.end();
    e.head_cost = measure_end_cost(!run.options.plaintext, computes ? "cpu" : "none", run.options.threads);
  }
  e.script_files = run.initial.script_files;
  if (!e.script_files.empty()) e.script_sha256 = transport::sha256_hex(e.script_files.bytes());
  e.train_fingerprint = run.inputs.train->fingerprint();
  e.script = run.inputs.script;
  if (run.inputs.test != nullptr) e.test_fingerprint = run.inputs.test->fingerprint();
  host.token = run.token;
  host.own_spki = run.identity.spki;
  e.pauses = run.options.pauses;
  e.pause_owed = run.pause_owed;
  e.state = run.loss_state;
  host.rates_after = run.options.rates_after;
  host.offers = run.options.offers;
  host.shows_codes = run.options.pair;
  host.verbose = run.options.verbose;
  host.machine = run.options.name.empty() ? transport::machine_name() : run.options.name;
  host.journal = journal_options(run, e);
  return host;
}

report::RunStarted started_event(const Run& run) {
  report::RunStarted event;
  event.run = hex(run.token.run);
  event.name = run.name;
  event.directory = run.dir->path().string();
  event.parameters = run.initial.layout.parameters();
  event.global_batch = run.batches().batch(run.server->version());
  event.seed = run.config.seed;
  event.steps = run.last_step();
  event.steps_per_epoch = run.steps_per_epoch;
  event.samples = run.inputs.train->size();
  event.first_step = run.server->version();
  if (run.options.token_file.empty()) event.join = fleet::to_text(run.token);
  event.token_file = run.options.token_file;
  event.join_with = run.options.join_with;
  event.plaintext = run.options.plaintext;
  event.pairing_code = run.pairing_code;
  event.addresses = typed_addresses(run.token);
  event.verbose = run.options.verbose;
  event.tested = run.inputs.test != nullptr;
  return event;
}

std::unique_ptr<WorkerHost> local_worker(Run& run, const Device& device, std::size_t number, CoordinatorHost& host) {
  const std::string machine = run.options.name.empty() ? transport::machine_name() : run.options.name;
  WorkerHostOptions options;
  options.hello = hello_for(device, machine, number);
  options.speeds = speeds_file();
  options.prepare = [&run, device](const wire::RunSpec&, const SharedBytes&) {
    return prepare_worker(run.provider, run.inputs, device.name, run.options.threads, kCopiesOfHead);
  };
  options.resource_policy = run.options.resource_policy;
  WorkerHostEvents events;
  events.note = [&host](const std::string& text) { host.tell(report::Note{text}); };
  events.ended = [&host, name = options.hello.name](const Status& status) {
    if (!status) host.local_failed(name, status.error());
  };
  auto worker = std::make_unique<WorkerHost>(std::move(options), std::move(events));
  auto [mine, theirs] = transport::make_inproc_pair();
  host.connections().add_local(hello_for(device, machine, number), std::move(theirs), worker->local_worker());
  worker->run_local(std::move(mine));
  return worker;
}

}  // namespace

Head::Head(const TrainOptions& options, ModelProvider& provider, report::Sink& sink)
    : run_{options, provider, sink, options.reception ? options.reception : std::make_shared<Reception>()} {}

Head::~Head() { run_.reception->pause(); }

Status Head::open() {
  for (const auto step : {&Run::open, &Run::load, &Run::make_server, &Run::make_identity, &Run::start_listening}) {
    if (Status status = (run_.*step)(); !status) return status;
  }
  return {};
}

void Head::report_owed_eval_point() {
  const std::uint64_t version = run_.server->version();
  const bool holds = run_.options.pauses != modes::Pauses::never;
  const modes::EvalPoints eval_points{holds ? run_.sizes().evaluate_every : 0};
  if (version == 0 || (version < run_.last_step() && !eval_points.at(run_.batches(), version))) return;
  const std::uint64_t epoch = run_.batches().range(version - 1).epoch;
  const report::EvalPointReached eval_point = run_.since_eval_point.take(epoch, version, state_of(*run_.server, false));
  if (holds && run_.pause_owed) run_.sink.take(eval_point);
}

void Head::start(bool resumable, std::function<void()> on_end) {
  run_.sink.take(started_event(run_));
  report_owed_eval_point();
  CoordinatorHostOptions options = host_options(run_);
  options.engine.resumable = resumable;
  options.engine.checksums = run_.options.plaintext;  // TLS has its own
  host_ = std::make_unique<CoordinatorHost>(std::move(options), std::move(*run_.server), std::move(*run_.ledger),
                                            run_.sink, [this, on_end = std::move(on_end)](Status status) {
                                              ended_.set_value(std::move(status));
                                              if (on_end) on_end();
                                            });
  run_.reception->receive(
      [this](std::shared_ptr<transport::Connection> link) { host_->connections().accept(std::move(link)); });
  host_->start();
  for (std::size_t i = 0; i < run_.devices.size(); ++i) {
    std::size_t number = 0;
    for (std::size_t j = 0; j < i; ++j) number += run_.devices[j].name == run_.devices[i].name ? 1 : 0;
    workers_.push_back(local_worker(run_, run_.devices[i], number, *host_));
  }
}

void Head::stop(bool final) {
  if (final) over_ = true;
  host_->stop(final);
}

Status Head::wait() {
  Status status = ended_.get_future().get();
  run_.reception->pause();
  run_.reception->ended(status.ok() || over_, guest_list(run_.dir->path()));
  return status;
}

}  // namespace motley::runtime
