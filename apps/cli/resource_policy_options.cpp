#include "resource_policy_options.h"

#include <string>

#include "wire/limits.h"
#include "wire/utf8.h"

namespace motley::cli {
namespace {

constexpr double kShareMin = 0.01;
constexpr unsigned kIdleAfterMin = 10;  // terminals tell when they were used to within 8 s
constexpr unsigned kIdleAfterMax = 86400;

// CLI::Range takes "nan" for a number in every range.
std::string share_fault(const std::string& text) {
  double share = 0;
  if (CLI::detail::lexical_cast(text, share) && share >= kShareMin && share <= 1) return {};
  return "expected a part of the time from 0.01 to 1, found '" + text + "'";
}

std::string name_fault(const std::string& text) {
  if (wire::is_utf8(text) && !text.empty() && wire::to_printable(text, wire::kNameCharactersMax) == text) return {};
  return "expected 1 to " + std::to_string(wire::kNameCharactersMax) + " printable characters, found " +
         std::to_string(text.size()) + " bytes";
}

}  // namespace

void add_name(CLI::App& command, std::string& name) {
  command.add_option("--name", name, "name of this machine")->check(CLI::Validator(name_fault, ""));
}

void add_resource_policy(CLI::App& command, runtime::ResourcePolicy& resource_policy) {
  command
      .add_option("--share", resource_policy.duty,
                  "F: compute at most this part of the time, and rest in between (default: 1; 0.5: half of it)")
      ->check(CLI::Validator(share_fault, "0.01 to 1"));
  command
      .add_option(
          "--nice", resource_policy.nice,
          "N: niceness of the threads that compute, 0 to 19 (default: " + std::to_string(resource_policy.nice) + ")")
      ->check(CLI::Range(0, 19));
  command.add_flag_callback(
      "--no-keep-awake", [&resource_policy] { resource_policy.keep_awake = false; },
      "let this machine go to sleep when nobody uses it, also while it trains");
}

void add_yielding(CLI::App& command, runtime::YieldOptions& yield) {
  CLI::Option* idle_only = command.add_flag("--idle-only", yield.idle_only,
                                            "pause while somebody uses this machine, and join again when it is idle");
  command
      .add_option_function<unsigned>(
          "--idle-after", [&yield](unsigned seconds) { yield.idle_after = std::chrono::seconds(seconds); },
          "SECONDS without a sign of use until the machine is idle (default: 60)")
      ->check(CLI::Range(kIdleAfterMin, kIdleAfterMax))
      ->needs(idle_only);
  command
      .add_option_function<std::string>(
          "--battery", [&yield](const std::string& what) { yield.battery_pauses = what == "pause"; },
          "pause or continue: what to do on battery power (default: continue)")
      ->check(CLI::IsMember({"pause", "continue"}));
}

}  // namespace motley::cli
