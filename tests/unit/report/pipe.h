#pragma once
// A pipe that a test reads when it wants to.

#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <string>

#include "report/writer.h"

namespace motley::report::test {

class Pipe {
 public:
  Pipe() {
    if (pipe(ends_.data()) != 0) std::abort();
    signal(SIGPIPE, SIG_IGN);  // as the program does
  }
  ~Pipe() {
    close_out();
    close_in();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  [[nodiscard]] int in() const { return ends_[1]; }
  [[nodiscard]] std::shared_ptr<Writer> writer() const { return std::make_shared<Writer>(in()); }
  void close_in() { shut(ends_[1]); }
  void close_out() { shut(ends_[0]); }
  /// All that is written until somebody closes its end.
  std::string text() {
    std::string all;
    std::array<char, 4096> buffer{};
    for (ssize_t got = 0; (got = read(ends_[0], buffer.data(), buffer.size())) > 0;) {
      all.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return all;
  }

 private:
  static void shut(int& end) {
    if (end >= 0) close(end);
    end = -1;
  }
  std::array<int, 2> ends_{-1, -1};
};

}  // namespace motley::report::test
