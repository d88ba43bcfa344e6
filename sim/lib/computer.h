#pragma once
// The device of a worker: softmax regression, with real arithmetic, that takes virtual time. The task loop runs its
// micro-batches, each when its time is over; the chunks of a gradient come out one after the other. One thread.

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/philox.h"
#include "compute/task_loop.h"
#include "compute/task_range.h"
#include "data/order.h"
#include "engine/local/local_steps.h"
#include "engine/local/soloist.h"
#include "engine/worker/worker.h"
#include "sim/process.h"
#include "sim/scenario.h"
#include "softmax/softmax.h"

namespace motley::sim {

/// The training and test data of a run; shared by all, since data sets never change.
struct Data {
  std::shared_ptr<const softmax::Blobs> train{}, test{};
};
Data make_data(const RunSetup& run);

class Computer {
 public:
  Computer(Process& process, const RunSetup& run, const WorkerSetup& setup, std::uint64_t stream);
  ~Computer();
  Computer(const Computer&) = delete;
  Computer& operator=(const Computer&) = delete;

  void build(const Data& data);
  [[nodiscard]] softmax::SoftmaxRegression& model() { return *model_; }
  [[nodiscard]] bool busy() const noexcept { return order_.has_value(); }

  /// Reports to `worker`, which must live as long as the process does. `computes` is called when all weights are there.
  void start(engine::TaskOrder order, engine::Worker& worker, std::function<void(const engine::TaskOrder&)> computes);
  void arrived(std::uint64_t number, ChunkId chunk, SharedBytes weights);
  /// Returns the limit that holds; 0: no such task runs, or it is abandoned.
  std::uint64_t limit(std::uint64_t number, std::uint64_t count);
  void finish_early(std::uint64_t number);
  /// Steps one after the other, once a task that runs has ended.
  struct DelegatedStepEvents {
    std::function<void(const engine::DelegatedStep&)> step;
    std::function<void(const engine::DelegationEnd&)> ended;
  };
  void delegate(engine::DelegatedSteps order, DelegatedStepEvents events);
  void cut(std::uint64_t delegation) { cut_ = delegation; }
  void set_speed(double factor) { speed_factor_ = factor; }
  void poison_next() { poison_ = true; }
  /// To see that the checks notice: a chunk of the next gradient, any by default, comes out multiplied, the next task
  /// takes longer.
  void scale_next(float factor, std::optional<std::size_t> chunk = std::nullopt) {
    scale_ = factor;
    scale_at_ = chunk;
  }
  /// Likewise: all of it with another sign; or that of so many gradients before.
  void negate_next() { negate_ = true; }
  void outdate_next(std::size_t gradients) { outdate_ = gradients; }
  /// Contributions that this changed.
  [[nodiscard]] std::uint64_t scaled() const noexcept { return scaled_; }
  void delay_next(Duration delay) { delay_ = delay; }

 private:
  class OrderWeights;
  class OrderStop;
  class Reports;
  struct Gradient {
    std::vector<SharedBytes> chunks;
    Outcome outcome;
  };
  void next_micro_batch();
  void end_micro_batch();
  void start_probe();
  [[nodiscard]] bool waits() const;  // for weights
  void wake();
  void complete();
  void emit(std::size_t chunk);
  void finish();
  [[nodiscard]] Task task_of(const engine::TaskOrder& order);
  /// The samples of its pass by class, so that shares are of other classes.
  void fill_by_class(const data::SampleOrder& samples, const engine::TaskOrder& order);
  Duration time_for(std::uint64_t samples);
  void next_delegated_step();
  void make_delegated_step(double seconds);
  void end_delegation(const std::optional<Error>& failure);
  void spoil();
  void mislead();
  void next_local_step();
  void make_local_step();
  void end_round(bool whole);

  Process& process_;
  const RunSetup& run_;
  const WorkerSetup& setup_;
  Philox random_;
  std::unique_ptr<softmax::SoftmaxRegression> model_;
  std::shared_ptr<const softmax::Blobs> train_;
  std::optional<compute::TaskLoop> loop_;
  engine::Worker* worker_ = nullptr;
  std::optional<engine::TaskOrder> order_;
  Time started_{};
  compute::TaskRange range_;
  std::vector<std::uint64_t> indices_;
  Task task_;
  std::unique_ptr<OrderWeights> weights_;
  std::unique_ptr<OrderStop> stop_;
  std::unique_ptr<Reports> reports_;
  std::function<void(const engine::TaskOrder&)> computes_;
  std::optional<Time> held_up_;  // a micro-batch whose weights are not there, since then
  Duration waited_{};
  double speed_factor_ = 1;
  bool poison_ = false;
  float scale_ = 1;
  std::optional<std::size_t> scale_at_;
  std::uint64_t scaled_ = 0;
  Duration delay_{};
  bool negate_ = false;
  std::size_t outdate_ = 0;
  struct Sent {
    std::vector<SharedBytes> chunks;
    double weight = 0;
  };
  std::deque<Sent> sent_;  // of one who sends old ones, the newest last
  Gradient gradient_;
  std::optional<engine::LocalSteps> local_;  // in rounds
  bool in_round_ = false;
  std::optional<engine::Soloist> soloist_;
  DelegatedStepEvents delegated_step_events_;
  std::uint64_t cut_ = 0;  // the newest delegation that is to end
};

}  // namespace motley::sim
