#pragma once
// A model on a device: all that a back end brings. Whatever can add up the gradients of some samples can be a worker.
// The task loop (src/compute) calls it, on one thread; it knows of limits, retries and networks, so that no back end
// has to. Torch-free.
//
// A task:  open, read?, load*, start, (forward, backward?)*, sums, finish?, gradient*, close. The weights may stay away
// while forward() runs: what it then needs, it asks Arriving for. No method throws.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "motley/bytes.h"
#include "motley/layout.h"
#include "motley/result.h"
#include "motley/task.h"

namespace motley {

class DeviceServer;
class DeviceOptimizer;

struct Capabilities {
  std::string device;               // "cpu", "cuda:0", "mps"
  std::string description;          // "NVIDIA GeForce RTX 4070 Ti", "AMD EPYC, 2 threads"
  std::uint32_t micro_batch = 256;  // a good default for this device
  std::uint64_t numbers = 0;        // a hash of random numbers that it draws from a fixed seed; 0: not known
};

/// Bytes of the memory of the device that computes.
struct MemoryUse {
  std::uint64_t used = 0;    // now
  std::uint64_t peak = 0;    // the most since the last time it was asked
  std::uint64_t budget = 0;  // what may be used in all; 0: unknown
  /// Of the budget, what libraries will take that nobody counts, once more than a few samples go at once.
  std::uint64_t scratch = 0;
};

/// Samples that go through the device at once.
struct MicroBatch {
  std::span<const std::uint64_t> indices;  // numbers in the data set
  std::uint64_t at = 0;                    // the first of them in Task::indices
  std::uint64_t wanted = 0;                // samples of the task, these among them, that are wanted by now
  /// Each goes through so many times, and counts once: the pass has one of the sizes that the device is asked for.
  std::uint32_t repeats = 1;
};

/// What a device must be spared to be believed. All zero: nothing, and fault() is never asked.
struct Care {
  std::uint32_t pass_sizes = 0;  // sizes of pass, in samples, that it may have at most; 0 or 2
  double pass_seconds = 0;       // a pass is shorter
  bool repeats = true;           // forward() knows MicroBatch::repeats

  [[nodiscard]] bool any() const noexcept { return pass_sizes > 0; }
};

/// What a device did wrong, whatever the calls said.
struct Fault {
  enum class Kind : std::uint8_t {
    stale,     // what was asked for was not computed
    aborted,   // the driver gave work up
    too_long,  // it gave up work that took too long
  };
  Kind kind = Kind::stale;
  std::string what{};  // for people
};

/// Over the micro-batches of a task.
struct Sums {
  double weight = 0;  // loss-bearing items
  double loss_sum = 0;
  std::uint64_t correct = 0;     // evaluate passes of classifiers
  std::vector<double> scores{};  // evaluate passes: whatever else is summed over samples, in an order all workers share
};

/// The weights of a task that are still on their way.
class Arriving {
 public:
  virtual ~Arriving() = default;
  /// Waits for the elements [first, last) of the flat vector; DeviceModel::load() has had them when it returns. False:
  /// they will not come, and whatever the model answers now is dropped.
  virtual bool bring(std::uint64_t first, std::uint64_t last) = 0;
  /// DeviceModel::load() has had it.
  [[nodiscard]] virtual bool loaded(ChunkId chunk) const = 0;
  [[nodiscard]] virtual bool complete() const = 0;
};

/// Hears, from within backward() or later but before finish() returns, of gradients that gradient() has and nothing
/// will be added to. Any thread, one at a time.
class Finals {
 public:
  virtual ~Finals() = default;
  virtual void placement_final(std::size_t placement) noexcept = 0;
};

/// How the host goes along with the device through the micro-batches of a training task.
enum class Flow : std::uint8_t {
  in_step,     // when a call returns, its work is done
  behind,      // the device is behind the host, and is given a backward pass before anybody waits for its sums
  overlapped,  // in step, and chunks of the gradient leave while the last backward pass runs
};

enum class Forward : std::uint8_t {
  computed,
  refused,  // nothing was computed: so many do not go together after all, and at_once() is less now
};

class DeviceModel {
 public:
  virtual ~DeviceModel() = default;
  [[nodiscard]] virtual const Layout& layout() const = 0;
  [[nodiscard]] virtual Capabilities capabilities() const = 0;
  /// Between tasks. From then on, of the budget, `for_others` bytes are used only while they must be, and not kept for
  /// reuse.
  virtual MemoryUse memory(std::uint64_t for_others) {
    static_cast<void>(for_others);
    return {};
  }
  /// Where weights, gradient and optimizer state can stay for many steps; nullptr: the device's memory is the host's.
  virtual DeviceOptimizer* device_optimizer() { return nullptr; }
  /// Where contributions can be summed, and the optimizer runs, beside the gradient; nullptr: on the host.
  virtual std::shared_ptr<DeviceServer> server() { return nullptr; }

  [[nodiscard]] virtual Care care() const { return {}; }
  /// Since it was asked last. Waits for the device, of which nothing that came before is believed until this is empty.
  virtual std::optional<Fault> fault() { return {}; }
  /// What libraries keep of the device's memory for later.
  virtual void empty_caches() {}

  [[nodiscard]] virtual Flow flow() const { return Flow::in_step; }
  /// Micro-batches are groups of so many positions, or several of them, which nothing cuts; 0: any samples may go
  /// together.
  [[nodiscard]] virtual std::uint32_t group(PassKind /*kind*/) const { return 0; }
  /// Samples of the next micro-batch of an open task at most; of one group, where a group is larger.
  [[nodiscard]] virtual std::uint32_t at_once(const Task& task) const { return task.micro_batch; }
  /// What load() has had stays as it is until the next load().
  [[nodiscard]] virtual bool keeps_weights() const { return false; }
  /// Its forward passes wait for each weight when they come to it: start() needs not all of them.
  [[nodiscard]] virtual bool starts_early(const Task& /*task*/) const { return false; }

  /// `task` and `weights` live until close().
  virtual Status open(const Task& task, Arriving& weights) = 0;
  /// These samples will probably be the first: they may be read while weights are on their way.
  virtual Status read(const MicroBatch& /*probable*/) { return {}; }
  /// The chunks from `first` on, whose spans live until close().
  virtual Status load(ChunkId first, std::span<const std::span<const float>> chunks) = 0;
  /// Sums and gradient are zero from here on.
  virtual Status start() = 0;
  virtual Result<Forward> forward(const MicroBatch& samples) = 0;
  /// Adds the gradient of the newest forward(). `finals`: nothing will be added after it, and chunks may leave.
  virtual Status backward(Finals* finals) = 0;
  /// Over all forward() of the task. May wait for the device, but where the task is resident and not kept: its loss_sum
  /// is zero, and the device optimizer tells it.
  virtual Result<Sums> sums() = 0;
  /// Nothing is added to the gradient of these `count` samples any more; gradient() has it from here on, unless the
  /// task is resident.
  virtual Status finish(std::uint64_t count) = 0;
  /// The **sum** over the samples. In the statistics chunk: sum(n*mean) and sum(n*(var+mean^2)) of their statistics.
  /// Before finish() those chunks alone whose placements are final.
  [[nodiscard]] virtual std::span<const float> gradient(ChunkId chunk) const = 0;
  /// The gradient of a kept task that was finished, by chunk: it stays as it is while somebody holds it.
  virtual Result<std::vector<SharedBytes>> keep() { return std::vector<SharedBytes>(); }
  /// The end of every task that was opened, however it went.
  virtual void close() {}
};

}  // namespace motley
