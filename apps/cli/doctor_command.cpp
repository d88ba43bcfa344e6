#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "machine/known_faults.h"
#include "machine/network_hints.h"
#include "machine/processor.h"
#include "machine/system.h"
#include "runtime/head/train.h"
#include "transport/addresses.h"
#include "transport/tcp/tcp.h"

namespace motley::cli {
namespace {

struct Finding {
  std::string subject;
  bool good = true;
  std::string text, hint;
};

Finding check_torch(TorchFacts& torch) {
  const std::string version = torch.version();
  if (!version.empty()) return {"torch", true, version, ""};
  return {"torch", false, "this Python has no torch: it trains softmax only", torch.how_to_get()};
}

Finding check_port() {
  transport::TcpOptions options;
  options.plaintext = true;
  transport::Tcp tcp(options);
  const auto listener =
      tcp.listen({"0.0.0.0", runtime::kDefaultPort}, [](const auto& connection) { connection->close(); });
  if (listener) {
    const std::string port = std::to_string(runtime::kDefaultPort);
    const auto firewall = machine::firewall_command(runtime::kDefaultPort);
    return {"port", true, "workers can join on port " + port + (firewall ? ", if the firewall lets them" : ""),
            firewall.value_or("")};
  }
  return {"port", false, listener.error().message, "another free port is taken unless --listen names one"};
}

Finding check_addresses() {
  std::string list;
  for (const std::string& address : transport::local_addresses()) list += (list.empty() ? "" : ", ") + address;
  const bool alone = list == "127.0.0.1";
  return {"network", !alone,
          alone ? "this machine has no address that others could reach" : "others reach this machine at " + list,
          alone ? "connect it to a network; until then only this machine trains" : ""};
}

Finding check_system() {
  const machine::System system = machine::this_system();
  return {"system", true,
          system.name + (system.build.empty() ? "" : " (" + system.build + ")") + ", " + machine::processor_name(), ""};
}

// A device, and what is publicly known to be wrong with it.
std::vector<Finding> check_device(const runtime::Device& device, TorchFacts& torch) {
  std::vector<Finding> findings{{"device " + device.name, true, device.description, ""}};
  if (device.name != "mps") return findings;
  std::string mlx;
  for (const auto& [name, version] : torch.facts())
    if (name == "mlx") mlx = version;
  const machine::System system = machine::this_system();
  for (const machine::KnownFault& fault : machine::known_faults_of_mps(system.name, system.build, mlx))
    findings.push_back({"device mps", false, fault.what, fault.remedy});
  return findings;
}

std::vector<Finding> check_surroundings() {
  std::vector<Finding> findings;
  for (const machine::NetworkHint& hint : machine::network_hints(transport::local_addresses()))
    findings.push_back({"network", false, hint.found, hint.command});
  return findings;
}

Finding check_disk() {
  std::error_code code;
  const auto space = std::filesystem::space(".", code);
  const double gib = code ? 0 : static_cast<double>(space.available) / (1U << 30);
  char text[64];
  std::snprintf(text, sizeof text, "%.1f GiB free here", gib);
  return {"disk", gib > 1, text, gib > 1 ? "" : "checkpoints need room: choose another place with --run"};
}

}  // namespace

void add_doctor(CLI::App& app, Command& chosen) {
  CLI::App* command =
      app.add_subcommand("doctor", "check what a run needs on this machine, and say what to do about it");
  command->callback([&chosen] {
    chosen = [](Context& context) -> Status {
      std::vector<Finding> findings{check_system(), check_torch(*context.torch), check_addresses(), check_port(),
                                    check_disk()};
      std::ranges::move(check_surroundings(), std::back_inserter(findings));
      for (const runtime::Device& device : context.torch->devices())
        std::ranges::move(check_device(device, *context.torch), std::back_inserter(findings));
      for (const Finding& finding : findings) {
        if (context.json) {
          print_json_line(nlohmann::ordered_json{
              {"event", "check"},
              {"subject", finding.subject},
              {"good", finding.good},
              {"text", finding.text},
              {"try",
               finding.hint}}.dump());
          continue;
        }
        std::printf("%s %-20s %s\n", finding.good ? "ok  " : "LOOK", finding.subject.c_str(), finding.text.c_str());
        if (!finding.hint.empty()) std::printf("     %-20s try: %s\n", "", finding.hint.c_str());
      }
      return {};
    };
  });
}

}  // namespace motley::cli
