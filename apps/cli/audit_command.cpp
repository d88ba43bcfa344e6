#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/batch_plan.h"
#include "commands.h"
#include "config/config.h"
#include "store/ledger.h"
#include "store/listed_order.h"

namespace motley::cli {
namespace {

struct AuditArguments {
  std::string run;
  std::optional<std::uint64_t> order;
};

// Of a run in rounds that has not ended: what its rounds lack counts in those to come.
Result<bool> makes_up(const std::filesystem::path& directory, const store::Ledger& ledger) {
  const std::filesystem::path file = directory / "run.toml";
  std::ifstream text(file);
  if (!text || ledger.steps.empty()) return false;
  const std::string toml((std::istreambuf_iterator<char>(text)), {});
  const Result<config::RunConfig> run = config::parse_kept(toml, file.string());
  if (!run) return run.error();
  if (!config::in_rounds(*run)) return false;
  const store::LedgerHeader& header = ledger.header;
  const std::uint64_t used = used_samples(header.samples, header.global_batch, header.drop_last);
  const std::uint64_t next = ledger.steps.back().step + 1;
  if (run->steps > 0) return next < config::sizes(*run, used).steps;
  return used > 0 && header.global_batch > 0 &&
         BatchPlan(used, header.global_batch, ledger.batch_changes).range(next).epoch < run->epochs;
}

Status run_audit(const AuditArguments& arguments, const Context& context) {
  std::filesystem::path path(arguments.run);
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) path /= "ledger";
  if (!std::filesystem::exists(path, ignored)) {
    return Error{ErrorCode::input, arguments.run + ": expected a run's directory or its ledger, found neither",
                 "the DIR of `motley train --run DIR`"};
  }
  Result<store::Ledger> ledger = store::read_ledger(path);
  if (!ledger) return ledger.error();
  if (arguments.order) {
    std::vector<std::uint64_t> samples = store::order_of(*ledger, *arguments.order);
    if (Status status = store::apply_listed_order(path.parent_path(), *arguments.order, samples); !status)
      return status;
    for (const std::uint64_t sample : samples) {
      std::printf("%llu\n", static_cast<unsigned long long>(sample));
    }
    return {};
  }
  const Result<bool> goes_on = makes_up(path.parent_path(), *ledger);
  if (!goes_on) return goes_on.error();
  const store::Audit audit = store::audit(*ledger, *goes_on);
  if (context.json) {
    print_json_line(nlohmann::ordered_json{{"event", "audit"},
                                           {"epochs", audit.epochs},
                                           {"samples", audit.samples},
                                           {"missing", audit.missing},
                                           {"duplicate", audit.duplicate},
                                           {"owed", audit.owed},
                                           {"rollbacks", ledger->rollbacks},
                                           {"findings", audit.findings}}
                        .dump());
  } else {
    std::printf("%llu epochs, %llu samples used: %llu missing, %llu used twice\n",
                static_cast<unsigned long long>(audit.epochs), static_cast<unsigned long long>(audit.samples),
                static_cast<unsigned long long>(audit.missing), static_cast<unsigned long long>(audit.duplicate));
    if (audit.owed > 0) {
      std::printf("  %llu samples of its rounds are still to be made: the next round begins with them\n",
                  static_cast<unsigned long long>(audit.owed));
    }
    for (const std::string& finding : audit.findings) std::printf("  %s\n", finding.c_str());
    if (ledger->torn) std::printf("  the last record is incomplete: its step was not finished\n");
  }
  if (audit.missing == 0 && audit.duplicate == 0) return {};
  return Error{ErrorCode::io, arguments.run + ": the ledger does not show every sample exactly once",
               "the findings name the steps"};
}

}  // namespace

void add_audit(CLI::App& app, Command& chosen) {
  auto arguments = std::make_shared<AuditArguments>();
  CLI::App* command =
      app.add_subcommand("audit", "prove from a run's ledger that every sample was used exactly once per epoch");
  command->add_option("run", arguments->run, "the run's directory")->required();
  command->add_option("--order", arguments->order,
                      "EPOCH: print its sample numbers in the order they were used, one a line");
  command->callback(
      [&chosen, arguments] { chosen = [arguments](Context& context) { return run_audit(*arguments, context); }; });
}

}  // namespace motley::cli
