#include "runtime/persist/machine_store.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/hex.h"
#include "store/file.h"
#include "store/secret_file.h"
#include "wire/limits.h"
#include "wire/utf8.h"

namespace motley::runtime {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::uint64_t kFileBytesMax = 1 << 20;
constexpr std::size_t kAddressCharactersMax = 64;

std::string text_in(const Json& entry, const char* field, std::size_t characters_max) {
  const auto found = entry.find(field);
  if (found == entry.end() || !found->is_string()) return {};
  return wire::to_printable(wire::to_utf8(found->get<std::string>(), wire::kNameBytesMax), characters_max);
}

std::vector<MetMachine> parse_machines(const std::string& text) {
  std::vector<MetMachine> machines;
  const Json list = Json::parse(text, nullptr, false);
  if (!list.is_array()) return machines;
  for (const Json& entry : list) {
    if (!entry.is_object() || machines.size() == MachineStore::kMachinesMax) break;
    MetMachine machine;
    const auto hardware = transport::parse_hardware_address(text_in(entry, "hardware_address", wire::kNameBytesMax));
    const bool has_key = from_hex(text_in(entry, "key", wire::kNameBytesMax), machine.key);
    machine.name = text_in(entry, "name", wire::kNameCharactersMax);
    machine.address = text_in(entry, "address", kAddressCharactersMax);
    if (!hardware || !has_key || machine.name.empty()) continue;
    machine.hardware_address = *hardware;
    machines.push_back(std::move(machine));
  }
  return machines;
}

bool same_card(const MetMachine& a, const MetMachine& b) {
  return a.key == b.key && a.hardware_address == b.hardware_address;
}

}  // namespace

std::vector<MetMachine> MachineStore::all() const {
  if (file_.empty()) return {};
  const Result<std::string> text = store::read_secret_file(file_, kFileBytesMax);
  return text ? parse_machines(*text) : std::vector<MetMachine>();
}

Status MachineStore::keep(const std::vector<MetMachine>& met) const {
  if (file_.empty() || met.empty()) return {};
  const std::vector<MetMachine> before = all();
  std::vector<MetMachine> machines = before;
  for (const MetMachine& machine : met) {
    std::erase_if(machines, [&](const MetMachine& known) { return same_card(known, machine); });
    machines.push_back(machine);
  }
  if (machines.size() > kMachinesMax)
    machines.erase(machines.begin(), machines.end() - static_cast<std::ptrdiff_t>(kMachinesMax));
  if (machines == before) return {};
  Json list = Json::array();
  for (const MetMachine& machine : machines) {
    list.push_back({{"name", machine.name},
                    {"hardware_address", transport::to_text(machine.hardware_address)},
                    {"address", machine.address},
                    {"key", to_hex(machine.key)}});
  }
  if (!store::make_directories(file_.parent_path())) return Error{ErrorCode::io, file_.string() + ": no directory", ""};
  return store::write_secret_file(file_, list.dump(1, ' ', true, Json::error_handler_t::replace) + "\n");
}

}  // namespace motley::runtime
