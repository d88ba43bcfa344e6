// What a report of a fault should begin with, on one screen. Versions, devices and numbers alone: no name of a user or
// of this machine, no address, and no place on its disks.

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "commands.h"
#include "machine/processor.h"
#include "machine/spare_memory.h"
#include "machine/system.h"

namespace motley::cli {
namespace {

using Facts = std::vector<std::pair<std::string, std::string>>;

std::string gibibytes(std::uint64_t bytes) {
  return bytes == 0 ? "not known" : formatted("%.1f GiB", static_cast<double>(bytes) / (1U << 30));
}

// Of a variable that holds a number or a list of some; what else a user may have put there is nobody's business.
std::string numbers_in(const char* name) {
  const char* value = std::getenv(name);
  const std::string text = value == nullptr ? "" : value;
  const auto counts = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0 || c == ','; };
  return std::ranges::all_of(text, counts) ? text : "set, and no number";
}

std::string threads() {
  std::string text =
      formatted("%u processors allowed, %.3g usable", machine::allowed_processors(), machine::usable_processors());
  for (const char* name : {"OMP_NUM_THREADS", "MKL_NUM_THREADS"})
    if (const std::string set = numbers_in(name); !set.empty()) text += std::string(", ") + name + "=" + set;
  return text;
}

std::string described(const runtime::Device& device) {
  return device.description + (device.threads > 0 ? ", " + std::to_string(device.threads) + " threads" : "") +
         (device.memory_bytes > 0 ? ", " + gibibytes(device.memory_bytes) : "");
}

Facts facts_of(Context& context) {
  const machine::System system = machine::this_system();
  const int wsl = machine::wsl_version();
  const std::string driver = machine::nvidia_driver();
  const auto spare = machine::spare_memory_bytes();
  Facts facts{{"motley", MOTLEY_VERSION},
              {"system",
               system.name + (system.build.empty() ? "" : " (" + system.build + ")") + ", " + machine::architecture()},
              {"wsl", wsl == 0 ? "no" : std::to_string(wsl)},
              {"processor", machine::processor_name()},
              {"memory", gibibytes(machine::memory_bytes()) + (spare ? ", " + gibibytes(*spare) + " free" : "")},
              {"threads", threads()}};
  facts.emplace_back("python", context.python);
  const Facts torch = context.torch->facts();
  if (torch.empty()) facts.emplace_back("torch", "none");
  facts.insert(facts.end(), torch.begin(), torch.end());
  facts.emplace_back("driver", driver.empty() ? "no NVIDIA driver" : "NVIDIA " + driver);
  for (const runtime::Device& device : context.torch->devices())
    facts.emplace_back("device " + device.name, described(device));
  return facts;
}

}  // namespace

void add_env(CLI::App& app, Command& chosen) {
  CLI::App* command =
      app.add_subcommand("env", "versions and devices of this machine, to paste into a report of a fault");
  command->callback([&chosen] {
    chosen = [](Context& context) -> Status {
      const Facts facts = facts_of(context);
      if (context.json) {
        nlohmann::ordered_json event{{"event", "env"}};
        for (const auto& [name, text] : facts) event[name] = text;
        print_json_line(event.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
        return {};
      }
      for (const auto& [name, text] : facts) std::printf("%-14s %s\n", name.c_str(), text.c_str());
      return {};
    };
  });
}

}  // namespace motley::cli
