#pragma once
// Where sinks write: whole lines to one descriptor, which never keep waiting whoever says them. What the reader takes
// at once is written at once; the rest waits, up to a bound, for a thread that is started when it is needed first. Any
// thread may use it.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

namespace motley::report {

inline constexpr std::size_t kUnreadBytesMax = std::size_t{1} << 20;  // that wait for their reader
inline constexpr std::chrono::milliseconds kHurry{1000};  // for the last words, where somebody wants to leave

enum class Importance : std::uint8_t { may_be_dropped, must_be_said };

class Writer {
 public:
  explicit Writer(int descriptor);
  /// Writes what waits, however long its reader takes, unless hurry() was called.
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// False: dropped, because so much waits already. Where nobody reads any more, nothing is written, and that is fine.
  [[nodiscard]] bool write(std::string lines, Importance importance);
  /// Bytes that wait.
  [[nodiscard]] std::size_t waiting() const;
  /// Waits until nothing waits, or hurry() was called, at most so long. Whether that is so.
  bool flush(std::chrono::milliseconds patience) const;
  /// Somebody wants to leave: what is not written kHurry after the end is given up.
  void hurry();

  [[nodiscard]] int descriptor() const noexcept { return state_->descriptor; }

 private:
  struct State {
    using Clock = std::chrono::steady_clock;
    explicit State(int d) : descriptor(d) {}
    const int descriptor;
    mutable std::mutex mutex;
    mutable std::condition_variable changed;
    std::deque<std::string> lines{};                   // the first one is being written
    std::size_t bytes = 0;                             // of these
    bool closing = false, gone = false, ended = true;  // gone: nobody reads any more; ended: no thread
    bool hurried = false;
    std::optional<Clock::time_point> deadline{};  // of a hurried end
    [[nodiscard]] bool given_up() const { return deadline && Clock::now() >= *deadline; }
  };
  static void run(const std::shared_ptr<State>& state);
  static bool write_all(State& state, std::string_view text);
  void start_thread();

  std::shared_ptr<State> state_;  // of the thread too, which may still be in a write when this is gone
  std::thread thread_;
};

}  // namespace motley::report
