#include "runtime/worker/stock_watch.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <utility>
#include <vector>

#include "data/order.h"

namespace motley::runtime {
namespace {

// As in _stock.py.
constexpr auto kStockEvery = std::chrono::milliseconds(100);
constexpr std::uint64_t kAtOnce = 4096;     // samples that are looked at before it looks where the run is
constexpr std::uint64_t kWishedMost = 512;  // behind those that are here, for which it wishes together
constexpr std::uint64_t kTestedSteps = 4;   // that are here before it wishes for test samples
constexpr std::uint64_t kLeadMost = 64;     // steps

}  // namespace

StockWatch::StockWatch(std::shared_ptr<const data::Dataset> train, std::shared_ptr<const data::Dataset> test,
                       std::uint64_t step, std::shared_ptr<SampleStock> stock)
    : train_{std::move(train)}, test_{std::move(test)}, step_(step), stock_(std::move(stock)) {
  told_.epoch = ~std::uint64_t{0};
  tell(train_.is_here());
}

void StockWatch::start() {
  thread_ = std::jthread([this](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any stopped;
    std::unique_lock lock(mutex);
    while (!look() && !stopped.wait_for(lock, stop, kStockEvery, [&stop] { return stop.stop_requested(); })) {
    }
  });
}

bool StockWatch::Whole::look() {
  while (!is_here()) {
    const std::uint64_t end = std::min(count + kAtOnce, set->size());
    while (count < end && set->is_here(count)) ++count;
    if (count < end) return false;
  }
  return true;
}

bool StockWatch::look() {
  if (!train_.is_here()) {
    const std::optional<SampleStock::Place> place = stock_->place();
    const bool missing = place && follow(*place);
    if (missing || !train_.look()) return false;
  }
  const bool tested = test_.look();
  tell(true);
  return tested;
}

void StockWatch::begin(const StepRange& newest, std::uint64_t lead) {
  lead_ = lead;
  epoch_ = newest.epoch;
  first_ = std::min(newest.order_first + lead * newest.count, train_.set->size());
  count_ = 0;
}

bool StockWatch::follow(const SampleStock::Place& place) {
  const StepRange& newest = place.newest;
  if (lead_ == 0 || newest.epoch != epoch_ || newest.order_first + (kLeadMost + 1) * newest.count < first_)
    begin(newest, 1);
  bool more = extend(place);
  if (newest.order_first + newest.count > first_ + count_) {  // the run has come past what is here
    begin(newest, std::min(2 * lead_, kLeadMost));
    more = extend(place);
  }
  const std::uint64_t step = newest.count > 0 ? newest.count : step_;
  if (count_ >= kTestedSteps * step) test_.look();
  tell(false);
  return more;
}

bool StockWatch::extend(const SampleStock::Place& place) {
  const std::uint64_t size = train_.set->size();
  const data::SampleOrder order(place.seed, epoch_, size, place.shuffles);
  const std::uint64_t step = place.newest.count > 0 ? place.newest.count : step_;
  std::vector<std::uint64_t> samples;
  while (first_ + count_ < size) {
    const std::uint64_t at = first_ + count_;
    samples.resize(static_cast<std::size_t>(std::min(kAtOnce, size - at)));
    order.fill(at, samples);
    std::size_t here = 0;
    while (here < samples.size() && train_.set->is_here(samples[here])) ++here;
    count_ += here;
    if (here == samples.size()) continue;
    const std::size_t end = std::min(samples.size(), here + static_cast<std::size_t>(std::min(step, kWishedMost)));
    // One by one, each would wait for a look.
    for (std::size_t i = here + 1; i < end; ++i) static_cast<void>(train_.set->is_here(samples[i]));
    return true;
  }
  return false;
}

void StockWatch::tell(bool all) {
  wire::Stock now{};
  if (!all) now = {.epoch = epoch_, .first = first_, .count = count_};
  now.all = all;
  now.lacks_tests = !test_.is_here();
  if (now == told_) return;
  told_ = now;
  stock_->tell(now);
}

}  // namespace motley::runtime
