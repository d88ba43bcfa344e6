#include <algorithm>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "runtime/inputs.h"
#include "runtime/persist/machine_store.h"
#include "transport/wake.h"

namespace motley::cli {
namespace {

struct WakeArguments {
  std::string name;
};

std::string text_of_machine(const runtime::MetMachine& machine) {
  return machine.name + " (" + transport::to_text(machine.hardware_address) + ", last seen at " + machine.address + ")";
}

// The newest first.
std::string some_machines(const std::vector<runtime::MetMachine>& known) {
  constexpr std::size_t kShown = 5;
  std::string list;
  for (std::size_t i = 0; i < std::min(kShown, known.size()); ++i)
    list += (list.empty() ? "" : ", ") + text_of_machine(known[known.size() - 1 - i]);
  return known.size() > kShown ? list + ", and " + std::to_string(known.size() - kShown) + " more" : list;
}

Error unknown_machine(const std::string& name, const std::vector<runtime::MetMachine>& known) {
  if (known.empty()) {
    return {ErrorCode::input,
            "no machine is known yet: only machines that once joined a run you started on this machine can be woken",
            "join with it once while it is awake; or motley wake 02:42:0a:4d:00:0b, its card's address"};
  }
  return {ErrorCode::input,
          "there is no machine '" + name + "' among those that joined a run here: " + some_machines(known),
          "motley wake " + known.back().name + "; motley wake lists all of them"};
}

void say_known(const std::vector<runtime::MetMachine>& known, Context& context) {
  for (const runtime::MetMachine& machine : known) {
    if (context.json) {
      print_json_line(nlohmann::ordered_json{{"event", "machine"},
                                             {"name", machine.name},
                                             {"hardware_address", transport::to_text(machine.hardware_address)},
                                             {"address", machine.address}}
                          .dump());
    } else {
      std::printf("%s\n", text_of_machine(machine).c_str());
    }
  }
}

Status wake_one(const std::string& name, const transport::HardwareAddress& card, Context& context) {
  const Result<std::vector<std::string>> sent = transport::wake(card);
  if (!sent) return sent.error();
  const std::string address = transport::to_text(card);
  if (context.json) {
    print_json_line(nlohmann::ordered_json{
        {"event", "wake"},
        {"name", name},
        {"hardware_address", address},
        {"sent", *sent}}.dump());
    return {};
  }
  std::string where;
  for (const std::string& network : *sent) where += (where.empty() ? "" : ", ") + network;
  std::printf("called %s%s on %s; it wakes in some seconds if its system and its card are set to\n", name.c_str(),
              name == address ? "" : (" (" + address + ")").c_str(), where.c_str());
  return {};
}

Status run_wake(const WakeArguments& arguments, Context& context) {
  if (const auto card = transport::parse_hardware_address(arguments.name))
    return wake_one(transport::to_text(*card), *card, context);
  std::vector<runtime::MetMachine> known = runtime::MachineStore(runtime::machines_file()).all();
  if (arguments.name.empty() && !known.empty()) {
    say_known(known, context);
    return {};
  }
  std::vector<transport::HardwareAddress> cards;
  for (const runtime::MetMachine& machine : known) {
    if (machine.name == arguments.name && std::ranges::count(cards, machine.hardware_address) == 0)
      cards.push_back(machine.hardware_address);
  }
  if (cards.empty()) return unknown_machine(arguments.name, known);
  for (const transport::HardwareAddress& card : cards) {
    if (Status status = wake_one(arguments.name, card, context); !status) return status;
  }
  return {};
}

}  // namespace

void add_wake(CLI::App& app, Command& chosen) {
  auto arguments = std::make_shared<WakeArguments>();
  CLI::App* command = app.add_subcommand("wake", "call a sleeping machine that joined a run here before");
  command->add_option("name", arguments->name,
                      "its name, or its card's address; without either, lists those that are known");
  command->callback(
      [&chosen, arguments] { chosen = [arguments](Context& context) { return run_wake(*arguments, context); }; });
}

}  // namespace motley::cli
