#include <windows.h>

#include <atomic>
#include <mutex>
#include <utility>

#include "signals.h"

namespace motley::cli {
namespace {

constexpr UINT kInterruptedStatus = 130;

std::mutex mutex;                  // of what follows: the system hands a handler nothing of ours
std::function<void()> first_call;  // empty: nobody listens
bool asked = false;

BOOL WINAPI on_event(DWORD /*event*/) {
  const std::lock_guard lock(mutex);
  if (!first_call) return FALSE;
  if (std::exchange(asked, true)) ::TerminateProcess(::GetCurrentProcess(), kInterruptedStatus);
  first_call();
  return TRUE;
}

}  // namespace

struct SignalThread::State {};

SignalThread::SignalThread(std::function<void()> first) {
  {
    const std::lock_guard lock(mutex);
    first_call = std::move(first);
    asked = false;
  }
  ::SetConsoleCtrlHandler(on_event, TRUE);
}

SignalThread::~SignalThread() {
  ::SetConsoleCtrlHandler(on_event, FALSE);
  const std::lock_guard lock(mutex);
  first_call = nullptr;
}

}  // namespace motley::cli
