#pragma once
// Everything a run on the head is made of, in the order in which it comes to be. Private to train().

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "fleet/token.h"
#include "ps/server.h"
#include "report/sink.h"
#include "runtime/head/events.h"
#include "runtime/head/reception.h"
#include "runtime/head/train.h"
#include "runtime/model_provider.h"
#include "store/ledger.h"
#include "store/run_dir.h"
#include "transport/crypto.h"

namespace motley::runtime {

struct Run {
  const TrainOptions& options;
  ModelProvider& provider;
  report::Sink& sink;
  std::shared_ptr<Reception> reception;

  config::RunConfig config{};
  std::string name{};
  std::optional<store::RunDir> dir{};
  ModelInputs inputs{};
  InitialState initial{};
  fleet::JoinToken token{};
  transport::Identity identity{};
  std::uint32_t incarnation = 0;
  std::uint64_t steps_per_epoch = 0;
  std::vector<BatchChange> batch_changes{};
  std::vector<Owed> owed{};  // by rounds before this process
  std::optional<ps::Server> server{};
  std::optional<store::LedgerWriter> ledger{};
  std::vector<Device> devices{};
  std::string pairing_code{};  // that it began with; empty: none
  // Of a run that is resumed.
  SinceEvalPoint since_eval_point{};
  bool pause_owed = false;  // the first version is an eval point that nobody resumed
  LossState loss_state{};   // what the loss gets

  Status open();
  Status load();
  /// Whether this model and data can be trained as `rounds` says.
  Status check_rounds(const config::RunConfig& rounds) const;
  /// Why a run that is asked for like this cannot be made in rounds; empty: it can.
  std::string against_rounds(const config::RunConfig& asked) const;
  Result<config::RunConfig> kept_config() const;
  Status choose_rounds_momentum();
  Status check_mode() const;
  Status make_server();
  /// The state of the newest checkpoint.
  Status restore(ps::Snapshot& snapshot);
  /// What the ledger knows of the steps before it. `norm_before`: of the gradient of the last of them.
  Status restore_history(std::optional<double>& norm_before);
  Status restore_holds(const store::Ledger& history);
  void follow_rates();
  [[nodiscard]] double rate_of(std::uint64_t step) const;
  Status make_identity();
  void make_token();
  Status start_listening();
  /// Positions of an epoch; its order is that of the whole data set.
  std::uint64_t epoch_samples() const {
    return used_samples(inputs.train->size(), config.global_batch, config.drop_last);
  }
  config::Sizes sizes() const { return config::sizes(config, inputs.train->size()); }
  BatchPlan batches() const { return BatchPlan(epoch_samples(), sizes().batch, batch_changes); }
  std::uint64_t last_step() const { return config.steps > 0 ? sizes().steps : batches().first_step(config.epochs); }
  store::LedgerHeader ledger_header() const {
    return {token.run,        config.seed,    inputs.train->size(), sizes().batch, inputs.train->fingerprint(),
            config.drop_last, !config.shuffle};
  }
};

}  // namespace motley::runtime
