#include "report/terminal_sink.h"

#include <chrono>
#include <mutex>
#include <utility>

#include "base/format.h"
#include "report/descriptor.h"
#include "report/screen.h"

namespace motley::report {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kRedrawEvery{100};

// What a terminal that does not read may be behind: then nothing is written, and the board keeps what is new.
constexpr std::size_t kBehindMax = std::size_t{64} << 10;
constexpr std::chrono::milliseconds kOthersWait{1000};  // who writes beside us, for a terminal that does not read

class TerminalSink final : public Display {
 public:
  explicit TerminalSink(std::shared_ptr<Writer> writer) : writer_(std::move(writer)) {}
  ~TerminalSink() override {
    erase();
    write();
  }
  TerminalSink(const TerminalSink&) = delete;
  TerminalSink& operator=(const TerminalSink&) = delete;

  void take(const Event& event) override {
    const std::lock_guard lock(mutex_);
    fold(board_, event);
    const auto* failure = std::get_if<Failure>(&event);
    const bool last_words = board_.done || (failure != nullptr && failure->error.code == ErrorCode::interrupted);
    if (active_ && last_words) leave();
    if (std::holds_alternative<RunStarted>(event)) begins_ = true;
    if (!last_words && writer_->waiting() > kBehindMax) return;
    if (said_ < board_.messages_said) {
      erase();
      say();
      active_ = active_ || std::exchange(begins_, false);
      draw(true);
    } else {
      draw(false);
    }
    write();
  }
  void hide() override {
    {
      const std::lock_guard lock(mutex_);
      erase();
      ++hidden_;
      write();
    }
    static_cast<void>(writer_->flush(kOthersWait));
  }
  void show(const std::string& begun) override {
    const std::lock_guard lock(mutex_);
    --hidden_;
    begun_ = begun;
    say();
    draw(true);
    write();
  }
  void end() override {
    {
      const std::lock_guard lock(mutex_);
      hidden_ = 0;
      say();
      leave();
      write();
    }
    static_cast<void>(writer_->flush(kOthersWait));
  }

 private:
  [[nodiscard]] std::size_t width() const {
    const std::size_t columns = columns_of(writer_->descriptor()).value_or(0);
    return columns > 20 ? columns - 1 : 79;
  }
  void write() { static_cast<void>(writer_->write(std::exchange(out_, {}), Importance::must_be_said)); }

  // What stays goes above the block that moves, which is not there now.
  void say() {
    if (hidden_ > 0) return;
    const std::uint64_t kept = board_.messages.empty() ? 0 : board_.messages.front().number;
    if (said_ + 1 < kept)
      out_ += formatted("(%llu messages are missing here: the terminal did not keep up)\n",
                        static_cast<unsigned long long>(kept - said_ - 1));
    for (const Board::Message& message : board_.messages)
      if (message.number > said_) out_ += message.lines;
    said_ = board_.messages_said;
  }
  void erase() {
    if (drawn_ == 0) return;
    out_ += "\r\x1b[" + std::to_string(drawn_) + "A\x1b[J";
    drawn_ = 0;
  }
  void leave() {
    begun_.clear();  // whoever began it writes it again
    draw(true);
    active_ = false;
    drawn_ = 0;
  }

  void draw(bool now) {
    if (!active_ || hidden_ > 0) return;
    if (!now && (Clock::now() - drawn_at_ < kRedrawEvery || writer_->waiting() > 0)) return;
    drawn_at_ = Clock::now();
    std::vector<std::string> lines = screen_of(board_);
    if (!begun_.empty()) lines.insert(lines.begin(), begun_);
    const std::size_t columns = width();
    // What others have begun may have symbols of two columns: where it does not fit, the terminal cuts it.
    std::string text = "\x1b[?7l";
    for (const std::string& line : lines) text += "\x1b[2K" + fit(line, columns) + "\n";
    text += drawn_ > lines.size() ? "\x1b[J\x1b[?7h" : "\x1b[?7h";
    if (drawn_ > 0 && text == drawn_text_) return;
    out_ += (drawn_ > 0 ? "\r\x1b[" + std::to_string(drawn_) + "A" : "") + text;
    drawn_ = lines.size();
    drawn_text_ = std::move(text);
  }

  std::mutex mutex_;
  std::shared_ptr<Writer> writer_;
  Board board_;
  std::string begun_, drawn_text_;
  std::string out_;  // of this call
  std::size_t hidden_ = 0, drawn_ = 0;
  std::uint64_t said_ = 0;  // messages
  bool begins_ = false, active_ = false;
  Clock::time_point drawn_at_{};
};

}  // namespace

std::unique_ptr<Display> make_terminal_sink(std::shared_ptr<Writer> writer) {
  return std::make_unique<TerminalSink>(std::move(writer));
}

}  // namespace motley::report
