#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "report/descriptor.h"

namespace motley::report {
namespace {

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

}  // namespace

const std::size_t kPieceBytes = PIPE_BUF;

bool ready(int descriptor, int patience_ms) {
  pollfd wanted{descriptor, POLLOUT, 0};
  return ::poll(&wanted, 1, patience_ms) > 0;
}

bool takes_at_once(int descriptor, std::size_t bytes) {
  struct stat what{};
  if (::fstat(descriptor, &what) != 0) return false;
  if (S_ISFIFO(what.st_mode)) return bytes <= PIPE_BUF && has_room(descriptor) && ready(descriptor, 0);
  return S_ISREG(what.st_mode) || (S_ISCHR(what.st_mode) && ::isatty(descriptor) == 0);
}

std::optional<std::string_view> write_some(int descriptor, std::string_view text) {
  const ssize_t written = ::write(descriptor, text.data(), text.size());
  if (written >= 0) return text.substr(static_cast<std::size_t>(written));
  if (errno == EINTR || errno == EAGAIN) return text;
  return std::nullopt;
}

std::optional<std::size_t> columns_of(int descriptor) {
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0) return std::nullopt;
  return size.ws_col;
}

struct SignalsBlocked::Before {
  sigset_t signals{};
};

SignalsBlocked::SignalsBlocked() : before_(std::make_unique<Before>()) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before_->signals);
}

SignalsBlocked::~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_->signals, nullptr); }

}  // namespace motley::report
