#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <mutex>
#include <thread>
#include <utility>

#include "base/thread_name.h"
#include "machine/error_words.h"

namespace motley::machine {
namespace {

constexpr std::size_t kLineMax = 4096;

void write_all(int to, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(to, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // who does not want to hear it need not
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

class ErrorWords::Pipe {
 public:
  Pipe(int before, std::array<int, 2> words, std::array<int, 2> end, std::function<bool(std::string_view)> wanted)
      : before_(before), words_(words), end_(end), wanted_(std::move(wanted)), thread_([this] { forward(); }) {}
  ~Pipe() {
    std::fflush(stderr);
    ::dup2(before_, STDERR_FILENO);
    ::close(end_[1]);
    thread_.join();
    for (const int each : {before_, words_[0], words_[1], end_[0]}) ::close(each);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  std::optional<std::string> take() {
    const std::lock_guard lock(mutex_);
    int waiting = 0;
    while (::ioctl(words_[0], FIONREAD, &waiting) == 0 && waiting > 0) pass_on();
    return std::exchange(found_, std::nullopt);
  }

 private:
  void forward() {
    name_thread("motley-errors");
    std::array<pollfd, 2> waits{pollfd{words_[0], POLLIN, 0}, pollfd{end_[0], POLLIN, 0}};
    for (;;) {
      if (::poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) return;
      if ((waits[0].revents & POLLIN) != 0) {
        const std::lock_guard lock(mutex_);
        int waiting = 0;
        if (::ioctl(words_[0], FIONREAD, &waiting) == 0 && waiting > 0) pass_on();
      } else if (waits[1].revents != 0) {
        return;
      }
    }
  }
  // REQUIRES mutex_, and that something waits.
  void pass_on() {
    std::array<char, 4096> buffer{};
    const ssize_t got = ::read(words_[0], buffer.data(), buffer.size());
    if (got <= 0) return;
    const std::string_view text(buffer.data(), static_cast<std::size_t>(got));
    write_all(before_, text);
    for (const char each : text) {
      if (each != '\n' && line_.size() < kLineMax) {
        line_.push_back(each);
        continue;
      }
      if (wanted_(line_) && (!found_ || found_->size() < kLineMax)) found_ = (found_ ? *found_ + " " : "") + line_;
      line_.clear();
    }
  }

  int before_;
  std::array<int, 2> words_, end_;
  std::function<bool(std::string_view)> wanted_;
  std::mutex mutex_;
  std::string line_;  // that is not whole
  std::optional<std::string> found_;
  std::thread thread_;
};

ErrorWords::ErrorWords(std::function<bool(std::string_view)> wanted) {
  std::array<int, 2> words{}, end{};
  const int before = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  if (before < 0) return;  // it is closed
  if (::pipe(words.data()) != 0) {
    ::close(before);
    return;
  }
  if (::pipe(end.data()) != 0) {
    for (const int each : {before, words[0], words[1]}) ::close(each);
    return;
  }
  for (const int each : {words[0], words[1], end[0], end[1]}) ::fcntl(each, F_SETFD, FD_CLOEXEC);
  std::fflush(stderr);
  ::dup2(words[1], STDERR_FILENO);
  pipe_ = std::make_unique<Pipe>(before, words, end, std::move(wanted));
}

ErrorWords::~ErrorWords() = default;

std::optional<std::string> ErrorWords::take() { return pipe_ ? pipe_->take() : std::nullopt; }

}  // namespace motley::machine
