#pragma once
// The file that a token was read from, looked at again while the head that the token leads to is not there or refuses
// it: then the file may have the token of another run by now. Any thread.

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "fleet/token.h"

namespace motley::runtime {

class TokenSource {
 public:
  /// `used`: what was read from it. Its thread begins here, so that it may read what a process that is confined later
  /// may not.
  TokenSource(std::string file, fleet::JoinToken used);
  ~TokenSource();
  TokenSource(const TokenSource&) = delete;
  TokenSource& operator=(const TokenSource&) = delete;

  /// Whether it was found to have another token; has it looked at. Never waits for a disk.
  [[nodiscard]] bool changed();
  /// Likewise, after it was looked at.
  [[nodiscard]] bool look();
  /// Whether there was no such file when it was looked at last.
  [[nodiscard]] bool gone();
  /// The other token, which is the one in use from now on; empty: there is none.
  [[nodiscard]] std::optional<fleet::JoinToken> take();

 private:
  void loop();

  const std::string file_;
  std::mutex mutex_;
  std::condition_variable asked_, looked_;
  bool wanted_ = false, stops_ = false, gone_ = false;
  std::uint64_t looks_ = 0;
  fleet::JoinToken used_;
  std::optional<fleet::JoinToken> other_;
  std::thread thread_;
};

}  // namespace motley::runtime
