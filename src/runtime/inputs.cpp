#include "runtime/inputs.h"

#include <algorithm>
#include <cstdlib>
#include <span>

#include "machine/known_faults.h"
#include "machine/system.h"
#include "transport/crypto.h"
#include "wire/frame.h"

namespace motley::runtime {
namespace {

constexpr std::uint64_t kGroupGrain = 32;
constexpr std::uint64_t kResidentVectors = 4;  // an optimizer's state, and what its step holds for a moment

std::filesystem::path variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing sets variables here
  return value == nullptr ? "" : value;
}

std::filesystem::path kept_as(const char* file) {
  const std::filesystem::path directory = cache_directory();
  return directory.empty() ? directory : directory / file;
}

// Of everything but the samples that rules how long a pass takes.
std::string speed_key(const ModelInputs& inputs, const DeviceModel& model, std::uint32_t micro_batch) {
  std::string about_model = inputs.config->model_kind;
  for (const LayoutEntry& entry : model.layout().entries()) {
    about_model += entry.name;
    for (const std::int64_t size : entry.shape) about_model += "," + std::to_string(size);
  }
  const Capabilities about = model.capabilities();
  return about.description + ", " + about.device + ", micro-batch " + std::to_string(micro_batch) + ", fp32, model " +
         transport::sha256_hex(std::as_bytes(std::span(about_model))).substr(0, 16);
}

}  // namespace

std::filesystem::path home_directory() { return variable("HOME"); }

std::filesystem::path cache_directory() {
  if (const std::filesystem::path own = variable("MOTLEY_CACHE"); !own.empty()) return std::filesystem::absolute(own);
  // Whose specification says that what is relative is to be ignored.
  if (const std::filesystem::path shared = variable("XDG_CACHE_HOME"); shared.is_absolute()) return shared / "motley";
  const std::filesystem::path home = home_directory();
  return home.empty() ? home : home / ".cache" / "motley";
}

std::filesystem::path speeds_file() { return kept_as("speeds.json"); }

std::filesystem::path key_file() { return kept_as("key.pem"); }

bool same_arguments(const std::vector<std::string>& theirs, const std::vector<std::string>& here) {
  return std::ranges::equal(theirs, here, [](const std::string& a, const std::string& b) {
    std::error_code ignored;
    return a == b || (b.find('/') != std::string::npos && std::filesystem::exists(b, ignored));
  });
}

std::uint64_t grain_of(const config::RunConfig& config, bool acts_on_groups) {
  if (config.grain > 0) return config.grain;
  return acts_on_groups ? kGroupGrain : 1;
}

namespace {

Result<engine::LocalRules> local_rules(ModelProvider& provider, const ModelInputs& inputs, std::uint64_t grain) {
  const config::RunConfig& config = *inputs.config;
  Result<LocalOptimizer> own = provider.local_optimizer(inputs);
  if (!own) return own.error();
  return engine::LocalRules{.optimizer = std::move(own->optimizer),
                            .outside = std::move(own->outside),
                            .schedule = std::move(own->schedule),
                            .clip_norm = config.clip_norm,
                            .batch = config.global_batch,
                            .samples = inputs.train->size(),
                            .grain = grain};
}

}  // namespace

Result<PreparedWorker> prepare_worker(ModelProvider& provider, const ModelInputs& inputs, const std::string& device,
                                      unsigned threads, std::uint64_t copies) {
  const config::RunConfig& config = *inputs.config;
  bool groups = false;
  {
    const Result<InitialState> state = provider.initial_state(inputs);
    if (!state) return state.error();
    groups = state->acts_on_groups;
  }  // its copy of the weights goes before the model makes its own
  Result<std::unique_ptr<DeviceModel>> model = provider.make(inputs, device, threads);
  if (!model) return model.error();
  PreparedWorker worker;
  worker.prepared.train_samples = inputs.train->size();
  worker.prepared.seed = config.seed;
  worker.prepared.shuffle = config.shuffle;
  if (config::in_rounds(config)) {
    Result<engine::LocalRules> rules = local_rules(provider, inputs, grain_of(config, groups));
    if (!rules) return rules.error();
    worker.prepared.local_steps = std::move(*rules);
  }
  worker.prepared.group = groups ? static_cast<std::uint32_t>(grain_of(config, true)) : 1;
  worker.prepared.chosen_micro_batch = config.micro_batch != 0;
  const auto preferred = static_cast<std::uint64_t>((*model)->capabilities().micro_batch);
  std::uint64_t samples = config.micro_batch != 0 ? config.micro_batch : preferred;
  // More groups at once than a model prefers may be more than it can keep apart.
  if (groups) samples = std::min(samples, preferred) / worker.prepared.group * worker.prepared.group;
  worker.prepared.micro_batch = std::max(worker.prepared.group, static_cast<std::uint32_t>(samples));
  worker.speed_key = speed_key(inputs, **model, worker.prepared.micro_batch);
  const std::uint64_t vector_bytes = (*model)->layout().flat_elements() * sizeof(float);
  if (device == "cpu") {
    worker.prepared.reserve_bytes = copies * vector_bytes;
  } else if ((*model)->device_optimizer() != nullptr) {
    // Where it would take much of the memory, the optimizer stays on the host rather.
    const std::uint64_t wanted = kResidentVectors * vector_bytes;
    if (wanted <= (*model)->memory(0).budget / 4) worker.prepared.reserve_bytes = wanted;
  }
  worker.compared.numbers = (*model)->capabilities().numbers;
  worker.prepared.model = std::move(*model);
  worker.compared.train_fingerprint = inputs.train->fingerprint();
  worker.samples = {inputs.train->size(), inputs.test != nullptr ? inputs.test->size() : 0};
  if (inputs.test != nullptr) worker.compared.test_fingerprint = inputs.test->fingerprint();
  worker.compared.script = inputs.script;
  return worker;
}

Result<std::vector<Device>> choose_devices(const ModelProvider& provider, const std::vector<std::string>& wanted) {
  const std::vector<Device> all = provider.devices();
  if (wanted.size() == 1 && wanted[0] == "none") return std::vector<Device>{};
  std::vector<Device> chosen;
  for (const std::string& name : wanted) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const Device& device) { return device.name == name; });
    if (found == all.end()) {
      std::string message = "--device " + name + ": this machine has";
      for (const Device& device : all) message.append(&device == all.data() ? " " : ", ").append(device.name);
      return Error{ErrorCode::usage, message, "`motley devices` says more"};
    }
    chosen.push_back(*found);
  }
  if (wanted.empty()) {
    for (const Device& device : all) {
      if (device.name != "cpu") chosen.push_back(device);
    }
    if (chosen.empty()) chosen = all;
  }
  return chosen;
}

std::vector<std::string> doubts_about(const std::vector<Device>& devices) {
  std::vector<std::string> doubts;
  if (std::ranges::none_of(devices, [](const Device& device) { return device.name == "mps"; })) return doubts;
  const machine::System system = machine::this_system();
  for (const machine::KnownFault& fault : machine::known_faults_of_mps(system.name, system.build, ""))
    doubts.push_back(fault.what + ": " + fault.remedy);
  return doubts;
}

wire::Hello hello_for(const Device& device, const std::string& machine, std::size_t number) {
  wire::Hello hello;
  hello.protocol = wire::kProtocolVersion;
  hello.software = "motley " MOTLEY_VERSION;
  hello.machine = machine;
  hello.name = machine + "/" + device.name + (number > 0 ? "#" + std::to_string(number + 1) : "");
  hello.device = device.name;
  hello.device_description = device.description;
  return hello;
}

}  // namespace motley::runtime
