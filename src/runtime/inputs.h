#pragma once
// What head and workers alike have before training: computations, devices, places of this machine.

#include <filesystem>
#include <memory>
#include <string>

#include "config/config.h"
#include "runtime/model_provider.h"
#include "runtime/worker/worker_host.h"

namespace motley::runtime {

/// Vectors of the model's size that a process takes after its workers are prepared.
constexpr std::uint64_t kCopiesOfHead = 11;  // of which five are steps on their way from a worker that is alone
constexpr std::uint64_t kCopiesOfWorker = 4;

/// The computation of one worker on `device`, over data that are loaded already. On the CPU it leaves room for `copies`
/// of the model's weights.
Result<PreparedWorker> prepare_worker(ModelProvider& provider, const ModelInputs& inputs, const std::string& device,
                                      unsigned threads, std::uint64_t copies);

/// Of this user; empty for one without.
std::filesystem::path home_directory();
/// Where this machine keeps for its user what can be had again, and its key: $MOTLEY_CACHE, $XDG_CACHE_HOME/motley or
/// ~/.cache/motley, as motley/_machines/_cache.py; empty for a user without a home, for whom nothing is kept.
std::filesystem::path cache_directory();
/// How fast this machine's devices are; empty where nothing is kept.
std::filesystem::path speeds_file();
/// Likewise, of machine_identity().
std::filesystem::path key_file();

/// The devices to use: as asked for, else accelerators, else the CPU. Empty for "none". Errors name what there is.
Result<std::vector<Device>> choose_devices(const ModelProvider& provider, const std::vector<std::string>& wanted);
/// Sentences on those of the devices with which something is publicly known to come out wrong here.
std::vector<std::string> doubts_about(const std::vector<Device>& devices);
wire::Hello hello_for(const Device& device, const std::string& machine, std::size_t number);

/// Of a program with a model of its own, as the head started it and as it was started here. Where data lie may differ:
/// what is a path here need not be the path there.
bool same_arguments(const std::vector<std::string>& theirs, const std::vector<std::string>& here);

/// Samples in a range that layers act on together: what ranges are cut at.
std::uint64_t grain_of(const config::RunConfig& config, bool acts_on_groups);

}  // namespace motley::runtime
