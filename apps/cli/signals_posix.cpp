#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

#include "signals.h"

namespace motley::cli {
namespace {

constexpr int kInterruptedStatus = 130;
constexpr int kQuit = SIGUSR2;  // ends the thread

sigset_t watched() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, kQuit}) sigaddset(&set, signal);
  return set;
}

}  // namespace

struct SignalThread::State {
  sigset_t before{};
  std::thread thread;
};

SignalThread::SignalThread(std::function<void()> first) : state_(std::make_unique<State>()) {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // a file-size limit is an error from write(), like a full disk
  const sigset_t set = watched();
  pthread_sigmask(SIG_BLOCK, &set, &state_->before);
  state_->thread = std::thread([set, first = std::move(first)] {
    bool asked = false;
    for (int received = 0; sigwait(&set, &received) == 0 && received != kQuit;) {
      if (asked) _exit(kInterruptedStatus);
      asked = true;
      first();
    }
  });
}

SignalThread::~SignalThread() {
  pthread_kill(state_->thread.native_handle(), kQuit);
  state_->thread.join();
  pthread_sigmask(SIG_SETMASK, &state_->before, nullptr);
}

}  // namespace motley::cli
