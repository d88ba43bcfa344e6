#include "report/writer.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <string_view>

namespace motley::report {
namespace {

constexpr int kLookEveryMs = 50;  // whether a reader is there, or somebody wants to leave

bool ready(int descriptor, int patience_ms) {
  pollfd wanted{descriptor, POLLOUT, 0};
  return ::poll(&wanted, 1, patience_ms) > 0;
}

// Others may write into the same pipe between a look and a write: so there must be room for more than this.
bool has_room([[maybe_unused]] int descriptor) {
#ifdef F_GETPIPE_SZ
  constexpr int kRoomForOthers = 4;  // times as much as is in it
  int unread = 0;
  return ::ioctl(descriptor, FIONREAD, &unread) == 0 && unread <= ::fcntl(descriptor, F_GETPIPE_SZ) / kRoomForOthers;
#else
  return true;
#endif
}

// Whether so many bytes can be written without waiting for a reader. Terminals, sockets: nobody knows.
bool takes_at_once(int descriptor, std::size_t bytes) {
  struct stat what{};
  if (::fstat(descriptor, &what) != 0) return false;
  if (S_ISFIFO(what.st_mode)) return bytes <= PIPE_BUF && has_room(descriptor) && ready(descriptor, 0);
  return S_ISREG(what.st_mode) || (S_ISCHR(what.st_mode) && ::isatty(descriptor) == 0);
}

/// Signals are for other threads.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

// What is left of it: less than before, or all where it has to be tried again; nothing where nobody reads any more.
std::optional<std::string_view> write_some(int descriptor, std::string_view text) {
  const ssize_t written = ::write(descriptor, text.data(), text.size());
  if (written >= 0) return text.substr(static_cast<std::size_t>(written));
  if (errno == EINTR || errno == EAGAIN) return text;
  return std::nullopt;
}

}  // namespace

Writer::Writer(int descriptor) : state_(std::make_shared<State>(descriptor)) {}

Writer::~Writer() {
  std::unique_lock lock(state_->mutex);
  state_->closing = true;
  if (state_->hurried) state_->deadline = State::Clock::now() + kHurry;
  state_->changed.notify_all();
  while (!state_->ended && !state_->given_up()) {
    if (state_->deadline) {
      state_->changed.wait_until(lock, *state_->deadline);
    } else {
      state_->changed.wait(lock);
    }
  }
  const bool ended = state_->ended;
  lock.unlock();
  if (!thread_.joinable()) return;
  if (ended) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

bool Writer::write(std::string lines, Importance importance) {
  const std::lock_guard lock(state_->mutex);
  if (lines.empty() || state_->gone) return true;
  if (importance == Importance::may_be_dropped && state_->bytes + lines.size() > kUnreadBytesMax) return false;
  if (state_->bytes == 0 && takes_at_once(state_->descriptor, lines.size())) {
    const std::optional<std::string_view> left = write_some(state_->descriptor, lines);
    state_->gone = !left;
    if (!left || left->empty()) return true;
    lines = std::string(*left);
  }
  state_->bytes += lines.size();
  state_->lines.push_back(std::move(lines));
  start_thread();
  state_->changed.notify_all();
  return true;
}

void Writer::start_thread() {
  if (thread_.joinable()) return;
  const SignalsBlocked blocked;
  state_->ended = false;
  thread_ = std::thread([state = state_] { run(state); });
}

std::size_t Writer::waiting() const {
  const std::lock_guard lock(state_->mutex);
  return state_->bytes;
}

bool Writer::flush(std::chrono::milliseconds patience) const {
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_for(lock, patience, [this] { return state_->bytes == 0 || state_->hurried; });
}

void Writer::hurry() {
  const std::lock_guard lock(state_->mutex);
  state_->hurried = true;
  state_->changed.notify_all();
}

void Writer::run(const std::shared_ptr<State>& state) {
  std::unique_lock lock(state->mutex);
  while (!state->given_up()) {
    state->changed.wait(lock, [&] { return state->closing || !state->lines.empty(); });
    if (state->lines.empty()) break;
    const std::string& first = state->lines.front();  // others only add behind it
    const std::size_t bytes = first.size();
    lock.unlock();
    const bool read = write_all(*state, first);
    lock.lock();
    state->gone = !read;
    state->bytes = read ? state->bytes - bytes : 0;
    if (read) {
      state->lines.pop_front();
    } else {
      state->lines.clear();
    }
    state->changed.notify_all();
  }
  state->ended = true;
  state->changed.notify_all();
}

// False where nobody reads any more, or will in time.
bool Writer::write_all(State& state, std::string_view text) {
  while (!text.empty()) {
    if (ready(state.descriptor, kLookEveryMs)) {
      const auto left = write_some(state.descriptor, text.substr(0, PIPE_BUF));
      if (!left) return false;
      text.remove_prefix(std::min<std::size_t>(text.size(), PIPE_BUF) - left->size());
    }
    const std::lock_guard lock(state.mutex);
    if (state.given_up()) return false;
  }
  return true;
}

}  // namespace motley::report
