#include "runtime/mailbox.h"

#include "base/assert.h"
#include "base/thread_name.h"

namespace motley::runtime {

Time now() {
  static const auto start = std::chrono::steady_clock::now();
  return std::chrono::steady_clock::now() - start;
}

void Mailbox::start(const char* name, std::function<void()> tick, Duration interval) {
  MOTLEY_ASSERT(!thread_.joinable());
  tick_ = std::move(tick);
  interval_ = interval;
  thread_ = std::thread([this, name] {
    name_thread(name);
    loop();
  });
}

void Mailbox::post(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    queue_.push_back(std::move(work));
  }
  arrived_.notify_one();
}

void Mailbox::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  arrived_.notify_one();
  if (thread_.joinable()) {
    MOTLEY_ASSERT(thread_.get_id() != std::this_thread::get_id());
    thread_.join();
  }
}

void Mailbox::loop() {
  std::vector<std::function<void()>> batch;
  Time next_tick = now() + interval_;
  for (;;) {
    bool last = false;
    {
      std::unique_lock lock(mutex_);
      arrived_.wait_for(lock, next_tick - now(), [this] { return stopping_ || !queue_.empty(); });
      batch.swap(queue_);
      last = stopping_;
    }
    for (auto& work : batch) work();
    batch.clear();
    if (last) return;
    if (now() >= next_tick) {
      tick_();
      next_tick = now() + interval_;
    }
  }
}

}  // namespace motley::runtime
