#include "runtime/worker/stock_watch.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "data/order.h"

namespace motley::runtime {
namespace {

constexpr std::uint64_t kSamples = 1000, kStep = 10, kSeed = 5;

class SomeHere final : public data::Dataset {
 public:
  [[nodiscard]] std::uint64_t size() const override { return kSamples; }
  [[nodiscard]] const std::vector<std::int64_t>& sample_shape() const override { return shape_; }
  [[nodiscard]] data::TargetKind target_kind() const override { return data::TargetKind::classes; }
  [[nodiscard]] std::uint64_t target_elements() const override { return 1; }
  [[nodiscard]] std::uint64_t classes() const override { return 2; }
  [[nodiscard]] const std::string& fingerprint() const override { return name_; }
  void gather(std::span<const std::uint64_t>, std::span<float>) const override {}
  void gather_classes(std::span<const std::uint64_t>, std::span<std::int64_t>) const override {}
  void gather_values(std::span<const std::uint64_t>, std::span<float>) const override {}
  [[nodiscard]] bool comes() const override { return true; }
  [[nodiscard]] bool is_here(std::uint64_t index) const override {
    const bool here = here_.contains(index);
    if (!here) wished_.insert(index);
    return here;
  }
  void bring(std::uint64_t index) { here_.insert(index); }
  void bring_all() {
    for (std::uint64_t i = 0; i < kSamples; ++i) bring(i);
  }
  [[nodiscard]] std::set<std::uint64_t> wished() const { return std::exchange(wished_, {}); }

 private:
  std::set<std::uint64_t> here_;
  mutable std::set<std::uint64_t> wished_;
  std::vector<std::int64_t> shape_{1};
  std::string name_ = "some";
};

class StockWatchTest : public testing::Test {
 protected:
  void begin(std::uint64_t epoch, std::uint64_t first) {
    if (!stock_->place()) stock_->begin(kSeed, true);
    stock_->opened({.epoch = epoch, .order_first = first, .count = kStep});
  }
  std::uint64_t sample(std::uint64_t position) { return data::SampleOrder(kSeed, 0, kSamples, true).at(position); }
  wire::Stock told() { return stock_->told().stock; }

  std::shared_ptr<SomeHere> train_ = std::make_shared<SomeHere>(), test_ = std::make_shared<SomeHere>();
  std::shared_ptr<SampleStock> stock_ = std::make_shared<SampleStock>();
};

TEST_F(StockWatchTest, SaysFromTheBeginningThatNothingIsHere) {
  const StockWatch watch(train_, nullptr, kStep, stock_);
  EXPECT_GT(stock_->told().number, 0U);
  EXPECT_EQ(told(), wire::Stock{});
}

TEST_F(StockWatchTest, WishesForTheStepsBehindTheOpenOneAndSaysWhichAreHere) {
  StockWatch watch(train_, nullptr, kStep, stock_);
  begin(0, 100);
  EXPECT_FALSE(watch.look());
  const std::set<std::uint64_t> wished = train_->wished();
  for (std::uint64_t position = 110; position < 110 + kStep; ++position) EXPECT_TRUE(wished.contains(sample(position)));
  for (std::uint64_t position = 110; position < 125; ++position) train_->bring(sample(position));
  EXPECT_FALSE(watch.look());
  EXPECT_EQ(told(), (wire::Stock{.epoch = 0, .first = 110, .count = 15}));
}

TEST_F(StockWatchTest, LooksFurtherAheadWhereTheRunHasComePast) {
  StockWatch watch(train_, nullptr, kStep, stock_);
  begin(0, 0);
  watch.look();
  begin(0, 50);
  watch.look();
  EXPECT_EQ(told().first, 50 + 2 * kStep);
  begin(0, 100);
  watch.look();
  EXPECT_EQ(told().first, 100 + 4 * kStep);
}

TEST_F(StockWatchTest, SaysWhenAllAreHere) {
  StockWatch watch(train_, test_, kStep, stock_);
  EXPECT_TRUE(told().lacks_tests);
  train_->bring_all();
  EXPECT_FALSE(watch.look());
  EXPECT_EQ(told(), (wire::Stock{.all = true, .lacks_tests = true}));
  test_->bring_all();
  EXPECT_TRUE(watch.look());
  EXPECT_EQ(told(), wire::Stock{.all = true});
}

TEST_F(StockWatchTest, WishesForTestSamplesWhenSomeStepsAreHere) {
  StockWatch watch(train_, test_, kStep, stock_);
  begin(0, 0);
  watch.look();
  EXPECT_TRUE(test_->wished().empty());
  for (std::uint64_t position = kStep; position < 6 * kStep; ++position) train_->bring(sample(position));
  watch.look();
  EXPECT_FALSE(test_->wished().empty());
}

}  // namespace
}  // namespace motley::runtime
