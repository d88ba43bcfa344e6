#include "machine/keep_awake.h"

#include <algorithm>
#include <cstdlib>

#ifdef _WIN32
#include <windows.h>

#include <future>
#include <thread>
#else
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string_view>
#include <vector>

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX has it in no header
#endif

namespace motley::machine {

std::string program_path() {
  const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): nothing sets variables here
  return path == nullptr ? "" : path;
}

#ifdef _WIN32

// The state is the thread's that set it, and ends with it.
class KeepAwake::Hold {
 public:
  ~Hold() {
    over_.set_value();
    thread_.join();
  }

 private:
  std::promise<void> over_;
  std::thread thread_{[over = over_.get_future()] {
    SetThreadExecutionState(ES_CONTINUOUS | ES_SYSTEM_REQUIRED);
    over.wait();
  }};
};

KeepAwake::KeepAwake(const std::string&, const std::string&) : hold_(std::make_unique<Hold>()) {}

#else

namespace {

#ifdef __APPLE__
constexpr std::string_view kTool = "caffeinate";
#else
constexpr std::string_view kTool = "systemd-inhibit";
#endif

std::vector<std::string> words_for([[maybe_unused]] const std::string& why) {
#ifdef __APPLE__
  return {std::string(kTool), "-i", "-w", std::to_string(getpid())};
#else
  // The lock is held for as long as `cat` runs, which ends with its input, and that with this process.
  return {std::string(kTool), "--what=idle:sleep", "--who=motley", "--why=" + why, "--mode=block", "cat"};
#endif
}

std::string find_tool(const std::string& path) {
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find(':', at), path.size());
    std::string file = path.substr(at, end - at) + "/" + std::string(kTool);
    if (end > at && access(file.c_str(), X_OK) == 0) return file;
    at = end + 1;
  }
  return {};
}

/// How the tool begins: silent, with `input`, with nothing of what is open here, and in a process group of its own, so
/// that Ctrl-C in a terminal is not for it.
class Start {
 public:
  explicit Start(int input) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
    posix_spawn_file_actions_adddup2(&actions_, input, STDIN_FILENO);
    posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, STDOUT_FILENO, STDERR_FILENO);
    short flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
#if defined(__APPLE__)
    flags |= POSIX_SPAWN_CLOEXEC_DEFAULT;
#elif defined(__GLIBC__)
#if __GLIBC_PREREQ(2, 34)
    posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1);
#endif
#endif
    posix_spawnattr_setflags(&attributes_, flags);
    posix_spawnattr_setpgroup(&attributes_, 0);
    sigset_t signals;
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes_, &signals);
    for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGXFSZ}) sigaddset(&signals, signal);
    posix_spawnattr_setsigdefault(&attributes_, &signals);
  }
  ~Start() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  Start(const Start&) = delete;
  Start& operator=(const Start&) = delete;

  /// The process; -1: there is none.
  [[nodiscard]] pid_t operator()(const std::string& file, std::vector<std::string> words) const {
    std::vector<char*> argv;
    argv.reserve(words.size() + 1);
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_t process = -1;
    return posix_spawn(&process, file.c_str(), &actions_, &attributes_, argv.data(), environ) == 0 ? process : -1;
  }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

}  // namespace

class KeepAwake::Hold {
 public:
  Hold(pid_t tool, int pipe) : tool_(tool), pipe_(pipe) {}
  // Children that were forked meanwhile have the pipe too, so closing it is not enough. In one of them the tool is
  // nobody's child, and stays.
  ~Hold() {
    close(pipe_);
    if (waitpid(tool_, nullptr, WNOHANG) != 0) return;
    kill(-tool_, SIGKILL);
    waitpid(tool_, nullptr, 0);
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  pid_t tool_;
  int pipe_;
};

KeepAwake::KeepAwake(const std::string& why, const std::string& path) {
  const std::string file = find_tool(path);
  std::array<int, 2> ends{};
  if (file.empty() || pipe(ends.data()) != 0) return;
  for (const int end : ends) fcntl(end, F_SETFD, FD_CLOEXEC);
  const pid_t tool = Start(ends[0])(file, words_for(why));
  close(ends[0]);
  if (tool > 0) {
    hold_ = std::make_unique<Hold>(tool, ends[1]);
  } else {
    close(ends[1]);
  }
}

#endif

KeepAwake::~KeepAwake() = default;

}  // namespace motley::machine
