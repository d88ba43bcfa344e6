// What there is to compute on. CUDA's own headers need the toolkit, so card names come from the driver, looked up at
// run time.
#include <torch/torch.h>

#include "machine/processor.h"
#include "machine/system.h"
#include "torch/devices.h"
#include "torch/guard.h"
#include "torch/torch_adapter.h"

#ifdef __linux__
#include <dlfcn.h>
#endif

namespace motley::torch_adapter {
namespace {

DeviceInfo cuda_device(int index) {
  DeviceInfo info{"cuda:" + std::to_string(index), "CUDA card", 0, 0};
#ifdef __linux__
  // Signatures from the CUDA driver API; the order of devices is the run time's, both follow CUDA_VISIBLE_DEVICES.
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return info;
  const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
  const auto get = reinterpret_cast<int (*)(int*, int)>(dlsym(driver, "cuDeviceGet"));
  const auto name = reinterpret_cast<int (*)(char*, int, int)>(dlsym(driver, "cuDeviceGetName"));
  const auto total = reinterpret_cast<int (*)(std::size_t*, int)>(dlsym(driver, "cuDeviceTotalMem_v2"));
  int device = 0;
  char text[256] = {};
  std::size_t bytes = 0;
  if (init != nullptr && get != nullptr && init(0) == 0 && get(&device, index) == 0) {
    if (name != nullptr && name(text, sizeof text - 1, device) == 0) info.description = text;
    if (total != nullptr && total(&bytes, device) == 0) info.memory_bytes = bytes;
  }
#endif
  return info;
}

bool has_mps() {
#ifdef __APPLE__
  return torch::mps::is_available();
#else
  return false;
#endif
}

std::string names_of(const std::vector<DeviceInfo>& all) {
  std::string names;
  for (const DeviceInfo& device : all) names += (names.empty() ? "" : ", ") + device.name;
  return names;
}

}  // namespace

std::vector<DeviceInfo> devices() {
  std::vector<DeviceInfo> all;
  const Status accelerators = guarded("looking for devices", [&]() -> Status {
    const int cards = torch::cuda::is_available() ? static_cast<int>(torch::cuda::device_count()) : 0;
    for (int i = 0; i < cards; ++i) all.push_back(cuda_device(i));
    // What a Mac's GPU computes depends on these, so whoever reads of a difference reads of them.
    const std::string mps = machine::processor_name() + " GPU, " + machine::this_system().name + ", torch " +
                            torch_version().substr(0, torch_version().find('+'));
    if (has_mps()) all.push_back({"mps", mps, machine::memory_bytes(), 0});
    return {};
  });
  if (!accelerators) all.clear();  // a driver that fails here would fail in training too
  all.push_back({"cpu", machine::processor_name(), machine::memory_bytes(), machine::allowed_processors()});
  return all;
}

Result<at::Device> find_device(const std::string& name) {
  const std::vector<DeviceInfo> all = devices();
  const std::string full = name == "cuda" ? "cuda:0" : name;
  for (const DeviceInfo& device : all) {
    if (device.name == full) return at::Device(full);
  }
  return Error{ErrorCode::usage, "no device '" + name + "' on this machine; there is " + names_of(all),
               "leave out --device to use all of them"};
}

std::string torch_version() { return MOTLEY_TORCH_VERSION; }

}  // namespace motley::torch_adapter
