#pragma once
// A pipe that a test reads when it wants to.

#ifdef _WIN32
#include <fcntl.h>
#include <io.h>
#else
#include <signal.h>
#include <unistd.h>
#endif

#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "report/writer.h"

namespace motley::report::test {

class Pipe {
 public:
  Pipe() {
#ifdef _WIN32
    if (_pipe(ends_.data(), kPipeBytes, _O_BINARY | _O_NOINHERIT) != 0) std::abort();
#else
    if (pipe(ends_.data()) != 0) std::abort();
    signal(SIGPIPE, SIG_IGN);  // as the program does
#endif
  }
  ~Pipe() {
    close_out();
    close_in();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  [[nodiscard]] int in() const { return ends_[1]; }
  [[nodiscard]] std::shared_ptr<Writer> writer() {
    const auto made = std::make_shared<Writer>(in());
    writers_.push_back(made);
    return made;
  }
  /// What was said is in the pipe: on some systems threads of the writers bring it there.
  void settle() {
    for (const auto& each : writers_) {
      const auto writer = each.lock();
      while (writer && !writer->flush(std::chrono::hours(1))) {
      }
    }
  }
  void close_in() { shut(ends_[1]); }
  void close_out() { shut(ends_[0]); }
  /// All that is written until somebody closes its end.
  std::string text() {
    std::string all;
    std::array<char, kPieceBytes> buffer{};
    for (long got = 0; (got = read(ends_[0], buffer.data(), kPieceBytes)) > 0;) {
      all.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return all;
  }

 private:
  static constexpr unsigned kPieceBytes = 4096, kPipeBytes = 65536;
  static void shut(int& end) {
    if (end >= 0) close(end);
    end = -1;
  }
  std::array<int, 2> ends_{-1, -1};
  std::vector<std::weak_ptr<Writer>> writers_;
};

}  // namespace motley::report::test
