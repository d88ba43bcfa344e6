#include "runtime/mailbox.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <set>

namespace motley::runtime {
namespace {

constexpr Duration kNever = std::chrono::hours(1);
constexpr Duration kTickMax = std::chrono::minutes(1);  // then a test fails that would wait for good

TEST(Mailbox, RunsWhatIsPostedInOrderOnOneThreadOfItsOwn) {
  std::vector<int> order;
  std::vector<std::thread::id> threads;
  Mailbox mailbox;
  mailbox.post([&] { order.push_back(0); });  // waits for the start
  mailbox.start("test", [] {}, kNever);
  for (int i = 1; i < 1000; ++i) {
    mailbox.post([&, i] {
      order.push_back(i);
      threads.push_back(std::this_thread::get_id());
    });
  }
  mailbox.stop();
  ASSERT_EQ(order.size(), 1000U);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
  for (const std::thread::id id : threads) {
    EXPECT_EQ(id, threads.front());
    EXPECT_NE(id, std::this_thread::get_id());
  }
}

TEST(Mailbox, MayBePostedToFromManyThreads) {
  int sum = 0;
  Mailbox mailbox;
  mailbox.start("test", [] {}, kNever);
  std::vector<std::thread> posters;
  for (int t = 0; t < 4; ++t) {
    posters.emplace_back([&] {
      for (int i = 0; i < 500; ++i) mailbox.post([&] { ++sum; });
    });
  }
  for (std::thread& poster : posters) poster.join();
  mailbox.stop();
  EXPECT_EQ(sum, 2000);
}

TEST(Mailbox, WorkMayPostMoreWork) {
  std::promise<void> third;
  Mailbox mailbox;
  mailbox.start("test", [] {}, kNever);
  mailbox.post([&] { mailbox.post([&] { mailbox.post([&] { third.set_value(); }); }); });
  third.get_future().get();
}

TEST(Mailbox, TicksWithoutAnyPost) {
  std::promise<void> ticked_thrice;
  std::set<std::thread::id> threads;
  int ticks = 0;
  Mailbox mailbox;
  mailbox.start(
      "test",
      [&] {
        threads.insert(std::this_thread::get_id());
        if (++ticks == 3) ticked_thrice.set_value();
      },
      std::chrono::milliseconds(1));
  EXPECT_EQ(ticked_thrice.get_future().wait_for(kTickMax), std::future_status::ready);
  mailbox.stop();
  EXPECT_EQ(threads.size(), 1U);
  EXPECT_FALSE(threads.contains(std::this_thread::get_id()));
}

TEST(Mailbox, TicksWhileItIsBusy) {
  std::promise<void> ticked;
  std::atomic<bool> done{false};
  Mailbox mailbox;
  std::function<void()> again = [&] {
    if (!done) mailbox.post(again);
  };
  mailbox.start(
      "test",
      [&] {
        if (!done.exchange(true)) ticked.set_value();
      },
      std::chrono::milliseconds(1));
  mailbox.post(again);
  EXPECT_EQ(ticked.get_future().wait_for(kTickMax), std::future_status::ready);
  done = true;
  mailbox.stop();
}

TEST(Mailbox, OnceStoppedItDropsWhatIsPosted) {
  const auto held = std::make_shared<int>(0);
  Mailbox mailbox;
  mailbox.start("test", [] {}, kNever);
  mailbox.stop();
  mailbox.post([held] { ++*held; });
  EXPECT_EQ(*held, 0);
  EXPECT_EQ(held.use_count(), 1);
  mailbox.stop();  // again is harmless
}

TEST(Mailbox, OneThatNeverStartedStopsToo) {
  Mailbox mailbox;
  mailbox.post([] { FAIL(); });
}

}  // namespace
}  // namespace motley::runtime
