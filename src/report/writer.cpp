#include "report/writer.h"

#include <algorithm>
#include <string_view>

#include "base/thread_name.h"
#include "report/descriptor.h"

namespace motley::report {
namespace {

constexpr int kLookEveryMs = 50;  // whether a reader is there, or somebody wants to leave

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
  thread_ = std::thread([state = state_] {
    name_thread("motley-report");
    run(state);
  });
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
      const auto left = write_some(state.descriptor, text.substr(0, kPieceBytes));
      if (!left) return false;
      text.remove_prefix(std::min(text.size(), kPieceBytes) - left->size());
    }
    const std::lock_guard lock(state.mutex);
    if (state.given_up()) return false;
  }
  return true;
}

}  // namespace motley::report
