#include "runtime/head/thread_team.h"

#include "base/thread_name.h"

namespace motley::runtime {

ThreadTeam::ThreadTeam(std::size_t helpers) {
  threads_.reserve(helpers);
  for (std::size_t i = 0; i < helpers; ++i) threads_.emplace_back([this] { help(); });
}

ThreadTeam::~ThreadTeam() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  begun_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadTeam::each(std::size_t count, const std::function<void(std::size_t)>& work) {
  const std::unique_lock caller(caller_, std::try_to_lock);
  if (!caller || count < 2) {
    for (std::size_t i = 0; i < count; ++i) work(i);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    work_ = &work;
    count_ = count;
    ++round_;
    next_ = 0;
  }
  begun_.notify_all();
  work_off(count, work);
  std::unique_lock lock(mutex_);
  work_ = nullptr;
  left_.wait(lock, [this] { return inside_ == 0; });
}

void ThreadTeam::help() {
  name_thread("motley-server");
  std::uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    begun_.wait(lock, [&] { return stopping_ || (work_ != nullptr && round_ != seen); });
    if (stopping_) return;
    seen = round_;
    ++inside_;
    const std::function<void(std::size_t)>& work = *work_;
    const std::size_t count = count_;
    lock.unlock();
    work_off(count, work);
    lock.lock();
    if (--inside_ == 0) left_.notify_one();
  }
}

void ThreadTeam::work_off(std::size_t count, const std::function<void(std::size_t)>& work) {
  for (std::size_t i = next_++; i < count; i = next_++) work(i);
}

}  // namespace motley::runtime
