#pragma once
// Says to the head which samples of data that come are here, so that it grants this machine no others, and wishes for
// those of coming steps, so that these come first; as python/motley/_content/_stock.py does for scripts. A thread of
// its own.

#include <cstdint>
#include <memory>
#include <thread>

#include "data/dataset.h"
#include "runtime/worker/sample_stock.h"

namespace motley::runtime {

class StockWatch {
 public:
  /// What is here is said before this returns. `test` may be null; `step`: samples of one.
  StockWatch(std::shared_ptr<const data::Dataset> train, std::shared_ptr<const data::Dataset> test, std::uint64_t step,
             std::shared_ptr<SampleStock> stock);
  StockWatch(const StockWatch&) = delete;
  StockWatch& operator=(const StockWatch&) = delete;

  /// Looks once, where no thread does. True: all are here, and were said to be.
  bool look();
  /// Looks until all are here.
  void start();

 private:
  // Whether all samples of a set are here, which is so from some time on.
  struct Whole {
    std::shared_ptr<const data::Dataset> set;  // null: there is none
    std::uint64_t count = 0;                   // from the first one on
    [[nodiscard]] bool is_here() const { return set == nullptr || !set->comes() || count == set->size(); }
    bool look();
  };

  /// False: nothing of this epoch is missing from where it looks.
  bool follow(const SampleStock::Place& place);
  /// False: to the end of the epoch.
  bool extend(const SampleStock::Place& place);
  void begin(const StepRange& newest, std::uint64_t lead);
  void tell(bool all);

  Whole train_, test_;
  const std::uint64_t step_;
  const std::shared_ptr<SampleStock> stock_;
  std::uint64_t epoch_ = 0, first_ = 0, count_ = 0;  // positions whose samples are here
  std::uint64_t lead_ = 0;                           // steps: how far behind the open one they begin; 0: not yet
  wire::Stock told_{};
  std::jthread thread_;
};

}  // namespace motley::runtime
