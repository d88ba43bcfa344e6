#pragma once
// A few threads that help one another thread with a loop.

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "ps/parallel.h"

namespace motley::runtime {

/// Whoever calls each() works, too, and takes what the helpers leave: helpers that find no processor cost nothing but
/// the piece they are at. A second caller at the same time does its loop alone. Thread-safe.
class ThreadTeam final : public ps::Parallel {
 public:
  explicit ThreadTeam(std::size_t helpers);
  ~ThreadTeam() override;
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  void each(std::size_t count, const std::function<void(std::size_t)>& work) override;

 private:
  void help();
  void work_off(std::size_t count, const std::function<void(std::size_t)>& work);

  std::mutex caller_;  // held by who is in each()
  std::mutex mutex_;
  std::condition_variable begun_, left_;
  const std::function<void(std::size_t)>* work_ = nullptr;  // open to helpers
  std::size_t count_ = 0;
  std::uint64_t round_ = 0;
  std::size_t inside_ = 0;  // helpers at work
  bool stopping_ = false;
  std::atomic<std::size_t> next_{0};
  std::vector<std::thread> threads_;
};

}  // namespace motley::runtime
