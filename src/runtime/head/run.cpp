// Opening, loading and restoring a run; its identity and its door.

#include <algorithm>
#include <filesystem>
#include <memory>
#include <thread>

#include "engine/head/coordinator.h"
#include "machine/spare_memory.h"
#include "plan/round_price.h"
#include "runtime/head/invitations.h"
#include "runtime/head/measuring.h"
#include "runtime/head/pairing.h"
#include "runtime/head/plan_modes.h"
#include "runtime/head/run.h"
#include "runtime/head/thread_team.h"
#include "runtime/inputs.h"
#include "store/checkpoint.h"
#include "store/release_files.h"

namespace motley::runtime {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kConfigBytesMax = 1U << 20;
constexpr std::uint64_t kCopiesOfState = 3;  // weights and the two moments of Adam
constexpr const char* kSmallerModel = "use a smaller model, or a machine with more memory as the head";

// Threads that help with the arithmetic of a large model. A small one's takes less than what waking them does.
std::size_t server_helpers(const Layout& layout) {
  constexpr std::uint64_t kLargeElements = std::uint64_t{4} << 20;
  constexpr std::size_t kThreadsMax = 8;
  if (layout.flat_elements() < kLargeElements) return 0;
  return std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, kThreadsMax) - 1;
}

std::string free_run_dir(const fs::path& here, const std::string& name) {
  for (int number = 1;; ++number) {
    const fs::path candidate = here / "runs" / (name + "-" + std::to_string(number));
    if (!fs::exists(candidate)) return candidate.string();
  }
}

// Scripts may go to another directory meanwhile.
std::string stays(const std::string& path) {
  std::error_code failure;
  const fs::path whole = fs::absolute(path, failure);
  return failure ? path : whole.string();
}

}  // namespace

Status Run::open() {
  Result<std::vector<Device>> chosen = choose_devices(provider, options.devices);
  if (!chosen) return chosen.error();
  devices = std::move(*chosen);
  for (const std::string& doubt : doubts_about(devices)) sink.take(report::Note{doubt});
  if (options.resume && options.run_dir.empty()) {
    return Error{ErrorCode::usage, "--resume: which run?", "motley train --resume --run runs/softmax-1"};
  }
  if (!options.resume || !options.target.empty()) {
    Result<config::RunConfig> loaded = read_config(options);
    if (!loaded) return loaded.error();
    config = std::move(*loaded);
  }
  if (config.mode == "auto") {
    return Error{ErrorCode::input, "train.mode: auto is for softmax, recipes and scripts with motley.Run",
                 "--set train.mode=exact"};
  }
  name =
      options.target.empty() ? fs::path(options.run_dir).filename().string() : fs::path(options.target).stem().string();
  std::string path = options.run_dir.empty() ? free_run_dir(options.here, name) : options.run_dir;
  if (!options.text.empty()) path = stays(path);
  Result<store::RunDir> opened = store::RunDir::open(path, options.resume);
  if (!opened) return opened.error();
  dir.emplace(std::move(*opened));
  if (dir->has_run() && !options.resume) {
    return Error{ErrorCode::input, path + ": there is a run already",
                 "--resume goes on with it; --run DIR starts a new one elsewhere"};
  }
  if (options.resume && options.text.empty()) {
    Result<std::string> text = dir->read_file("run.toml", kConfigBytesMax);
    if (!text) return text.error();
    Result<config::RunConfig> kept = config::parse_kept(*text, path + "/run.toml", options.overrides);
    if (!kept) return kept.error();
    config = std::move(*kept);
  }
  return {};
}

Status Run::load() {
  Result<ModelInputs> loaded = provider.load(config);
  if (!loaded) return loaded.error();
  inputs = std::move(*loaded);
  if (config.global_batch > inputs.train->size()) {
    return Error{ErrorCode::input,
                 "train.global_batch: expected at most the " + std::to_string(inputs.train->size()) +
                     " samples of the training set, found " + std::to_string(config.global_batch),
                 "--set train.global_batch=" + std::to_string(std::min<std::uint64_t>(256, inputs.train->size()))};
  }
  Result<InitialState> state = provider.initial_state(inputs);
  if (!state) return state.error();
  initial = std::move(*state);
  batch_changes = initial.batches;
  if (Status fits = check_rounds(config); !fits) return fits;
  if (Status chosen = choose_rounds_momentum(); !chosen) return chosen;
  const std::uint64_t state_bytes = kCopiesOfState * initial.layout.flat_elements() * sizeof(float);
  if (Status room = machine::check_memory_for(state_bytes, "weights and optimizer of this model", kSmallerModel);
      !room) {
    return room;
  }
  steps_per_epoch = batches().first_step(1);
  return {};
}

// Averages of running statistics over rounds are another training than was ever measured.
Status Run::check_rounds(const config::RunConfig& rounds) const {
  const auto statistics = [](const Chunk& chunk) { return chunk.kind == ChunkKind::statistics; };
  if (!config::in_rounds(rounds)) return {};
  if (std::ranges::any_of(initial.layout.chunks(), statistics)) {
    return Error{ErrorCode::input,
                 "a model with running statistics (BatchNorm) is not supported with train.mode = \"rounds\" yet",
                 "--set train.mode=exact, or a model with another normalisation"};
  }
  return config::check_whole_rounds(rounds, epoch_samples());
}

std::string Run::against_rounds(const config::RunConfig& asked) const {
  config::RunConfig rounds = asked;
  rounds.mode = "rounds";
  const Result<config::RunConfig> fits = config::parse(config::to_toml(rounds), "");
  if (!fits) return fits.error().message;
  const Status whole = check_rounds(rounds);
  return whole ? std::string() : whole.error().message;
}

Result<config::RunConfig> Run::kept_config() const {
  const Result<std::string> text = dir->read_file("run.toml", kConfigBytesMax);
  if (!text) return text.error();
  return config::parse_kept(*text, (dir->path() / "run.toml").string());
}

// Momentum is published to gain for long runs of large models; in short ones of small models rounds without it were
// measured to cost half (docs/design/0040-rounds.md). A run that goes on makes the rounds that it made.
Status Run::choose_rounds_momentum() {
  constexpr double kPublished = 0.9;
  constexpr std::size_t kSeveral = 2;
  if (!config::in_rounds(config) || config.rounds_momentum >= 0) return {};
  if (options.resume) {
    const Result<config::RunConfig> kept = kept_config();
    if (!kept) return kept.error();
    config.rounds_momentum = std::max(0.0, kept->rounds_momentum);
    return {};
  }
  const plan::RunOutline outline = outline_of(config, inputs.train->size(), initial.layout.parameters());
  config.rounds_momentum = plan::against_rounds(outline, kSeveral, config.rounds_steps).empty() ? kPublished : 0;
  return {};
}

// Another mode would be another training.
Status Run::check_mode() const {
  const Result<config::RunConfig> kept = kept_config();
  if (!kept) return kept.error();
  const std::string of_round = std::to_string(kept->rounds_steps);
  if (kept->mode == config.mode && (kept->rounds_steps == config.rounds_steps || !config::in_rounds(config))) return {};
  return Error{
      ErrorCode::mismatch,
      "the run was begun with train.mode = \"" + kept->mode + "\"" +
          (config::in_rounds(*kept) ? " and train.rounds.steps = " + of_round : ""),
      "--set train.mode=" + kept->mode + (config::in_rounds(*kept) ? " --set train.rounds.steps=" + of_round : "")};
}

Status Run::make_server() {
  ps::Snapshot snapshot{0, initial.weights, initial.optimizer_state};
  if (options.resume) {
    if (Status status = restore(snapshot); !status) return status;
  } else {
    token.run = reception->is_open() ? reception->token().run : transport::random_u64();
  }
  const bool rounds = config::in_rounds(config);  // then the optimizer is the workers' own
  Result<ps::Server> made =
      rounds ? ps::Server::make(initial.layout, config::outer_spec(config, initial.optimizer.groups.size()), {}, 0,
                                snapshot)
             : ps::Server::make(initial.layout, initial.optimizer, initial.schedule, config.clip_norm, snapshot);
  if (!made) return made.error();
  server.emplace(std::move(*made));
  if (const std::size_t helpers = server_helpers(initial.layout); helpers > 0)
    server->share_work(std::make_shared<ThreadTeam>(helpers));
  const fs::path ledger_file = dir->path() / "ledger";
  std::optional<double> norm_before;
  follow_rates();
  if (options.resume) {
    if (Status status = restore_history(norm_before); !status) return status;
  }
  if (server->limits_norm() && config.clip_norm_of == "previous") server->clip_by_step_before(norm_before);
  if (!options.resume) {
    // Without a run.toml there is no run: this is of a start that was killed before it wrote one.
    const Result<store::Ledger> left = store::read_ledger(ledger_file);
    std::error_code ignored;  // opening says what is wrong
    if (left && left->steps.empty()) fs::remove(ledger_file, ignored);
  }
  Result<store::LedgerWriter> writer = store::LedgerWriter::open(ledger_file, ledger_header());
  if (!writer) return writer.error();
  ledger.emplace(std::move(*writer));
  Result<std::uint32_t> next = dir->next_incarnation();
  if (!next) return next.error();
  incarnation = *next;
  if (options.resume) {
    if (Status status = ledger->append(store::LedgerRollback{server->version(), incarnation}); !status) return status;
  }
  for (const BatchChange& change : batch_changes) {
    if (change.first_step < server->version()) continue;
    if (Status status = ledger->append(change); !status) return status;
  }
  if (options.resume) return {};
  if (initial.state) {
    loss_state = {1, *initial.state};
    if (Status status = store::write_state(dir->path(), 0, loss_state); !status) return status;
  }
  return dir->write_file("run.toml", config::to_toml(config));
}

// A run keeps its key, secret and port, so that its workers find it again after a restart; and those of the run before
// it in the same script.
Status Run::start_listening() {
  if (!reception->is_open()) {
    const std::uint16_t usual = options.resume && token.port != 0 ? token.port : kDefaultPort;
    if (Status status = reception->open(identity, options.listen, usual, token); !status) return status;
    if (options.resume && options.listen.empty() && usual != reception->token().port) {
      const std::string port = std::to_string(usual);
      sink.take(report::Note{"port " + port +
                             " is taken, and workers elsewhere look for this run there: join them again, "
                             "or end what has the port, and --resume again"});
    }
  }
  token = reception->token();
  if (Status status = write_guest_list(reception->guests(), dir->path()); !status) return status;
  if (Status status = dir->write_file("token", fleet::to_text(token) + "\n", true); !status) return status;
  if (options.pair) {
    const Result<PairingCode> code = open_pairing(dir->path());
    if (!code) return code.error();
    pairing_code = code->digits;
  }
  std::error_code none;
  const bool own = fs::equivalent(options.token_file, dir->path() / "token", none);
  return options.token_file.empty() || own ? Status() : reception->show_in(options.token_file);
}

void Run::make_token() {
  renew(token, identity);
  token.expires_unix_s = expiry_of(options.token_good_for);
}

Status Run::make_identity() {
  if (reception->is_open()) {
    if (token.run != reception->token().run) {
      return Error{ErrorCode::mismatch, dir->path().string() + ": the run there is not one of this script's runs",
                   "--run DIR of its first run"};
    }
    identity = reception->identity();
    return dir->write_file("key.pem", identity.pem, true);
  }
  token.plaintext = options.plaintext;
  if (options.resume) {
    Result<std::string> pem = dir->read_file("key.pem", kConfigBytesMax);
    Result<std::string> text = dir->read_file("token", kConfigBytesMax);
    if (pem && text) {
      Result<transport::Identity> kept = transport::identity_from_pem(std::move(*pem));
      Result<fleet::JoinToken> before = fleet::parse_token(*text);
      if (kept && before && before->run == token.run) {
        identity = std::move(*kept);
        token = std::move(*before);
        token.plaintext = options.plaintext;
        const bool over = token.expires_unix_s != 0 && token.expires_unix_s <= unix_seconds();
        if (options.new_token || options.token_good_for || over) make_token();
        return {};
      }
    }
  }
  identity = transport::make_identity();
  make_token();
  return dir->write_file("key.pem", identity.pem, true);
}

}  // namespace motley::runtime
