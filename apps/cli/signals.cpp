#include "signals.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

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

SignalThread::SignalThread(std::function<void()> first) {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // a file-size limit is an error from write(), like a full disk
  const sigset_t set = watched();
  pthread_sigmask(SIG_BLOCK, &set, &before_);
  thread_ = std::thread([set, first = std::move(first)] {
    bool asked = false;
    for (int received = 0; sigwait(&set, &received) == 0 && received != kQuit;) {
      if (asked) _exit(kInterruptedStatus);
      asked = true;
      first();
    }
  });
}

SignalThread::~SignalThread() {
  pthread_kill(thread_.native_handle(), kQuit);
  thread_.join();
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace motley::cli
