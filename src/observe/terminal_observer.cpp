#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>
#include <vector>

#include "observe/observer.h"
#include "observe/screen_text.h"
#include "observe/write_all.h"

namespace motley::observe {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kRedrawEvery{100};
constexpr std::size_t kHistoryMax = 4096;
constexpr double kSmoothing = 0.05;  // of samples/s, for the time left

struct WorkerLine {
  std::string description, state;
  std::uint64_t samples = 0;
  double compute_s = 0, wait_s = 0;
  std::uint64_t bytes = 0;
  bool present = false;
};

class TerminalObserver final : public Display {
 public:
  explicit TerminalObserver(int descriptor) : descriptor_(descriptor), plain_(make_plain_observer(descriptor)) {}
  ~TerminalObserver() override { erase(); }
  TerminalObserver(const TerminalObserver&) = delete;
  TerminalObserver& operator=(const TerminalObserver&) = delete;

  void run(const RunStarted& e) override {
    const std::lock_guard lock(mutex_);
    started_ = e;
    steps_done_ = e.first_step;
    above([&] { plain_->run(e); });
    active_ = true;
    draw(true);
  }
  void worker(const WorkerChanged& e) override {
    const std::lock_guard lock(mutex_);
    WorkerLine& line = workers_[e.worker];
    line.present = e.change == "joined" || e.change == "readmitted";
    line.description = e.description;
    line.state = e.change;
    if (!line.present) line.samples = 0;
    above([&] { plain_->worker(e); });
  }
  void step(const StepDone& e) override {
    const std::lock_guard lock(mutex_);
    step_ = e;
    if (e.steps > 0) started_.steps = e.steps;
    if (e.global_batch > 0) started_.global_batch = e.global_batch;
    rate_ = rate_ <= 0 ? e.samples_per_s : rate_ + kSmoothing * (e.samples_per_s - rate_);
    if (losses_.size() == kHistoryMax) losses_.erase(losses_.begin(), losses_.begin() + kHistoryMax / 2);
    losses_.push_back(e.loss);
    for (auto& [name, line] : workers_) line.samples = 0;
    for (const WorkerPart& part : e.workers) {
      WorkerLine& line = workers_[part.worker];
      line.present = true;
      line.samples = part.samples;
      line.compute_s = part.compute_s;
      line.wait_s = part.wait_s;
      line.bytes = part.sent_bytes + part.received_bytes;
    }
    steps_done_ = e.step + 1;
    draw(false);
  }
  void plan(const PlanMade& e) override {
    const std::lock_guard lock(mutex_);
    above([&] { plain_->plan(e); });
  }
  void eval(const EvalDone& e) override {
    const std::lock_guard lock(mutex_);
    above([&] { plain_->eval(e); });
  }
  void checkpoint(std::uint64_t step, const std::string& path) override {
    const std::lock_guard lock(mutex_);
    if (step == 0) above([&] { plain_->checkpoint(step, path); });  // later ones are routine; done() names the last
  }
  void done(const Done& e) override {
    const std::lock_guard lock(mutex_);
    finish();
    plain_->done(e);
  }
  void error(const Error& e) override {
    const std::lock_guard lock(mutex_);
    if (e.code == ErrorCode::interrupted) finish();
    above([&] { plain_->error(e); });
  }
  void note(const std::string& text) override {
    const std::lock_guard lock(mutex_);
    above([&] { plain_->note(text); });
  }
  void waiting(const std::string& text) override {
    const std::lock_guard lock(mutex_);
    waiting_ = text;
    draw(false);
  }
  void download(const std::string& file, std::uint64_t done, std::uint64_t total) override {
    const std::lock_guard lock(mutex_);
    const double fraction = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 0;
    write_all(descriptor_, "\r\x1b[2K" + fit(progress_bar(fraction, 30) + " " + file + " " +
                                                 count_text(static_cast<double>(done)) + "B",
                                             width()));
    if (total > 0 && done >= total) write_all(descriptor_, "\n");
  }
  void hide() override {
    const std::lock_guard lock(mutex_);
    erase();
    ++hidden_;
  }
  void show(const std::string& begun) override {
    const std::lock_guard lock(mutex_);
    --hidden_;
    begun_ = begun;
    draw(true);
  }
  void end() override {
    const std::lock_guard lock(mutex_);
    finish();
  }

 private:
  [[nodiscard]] std::size_t width() const {
    winsize size{};
    return ioctl(descriptor_, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col - 1U : 79U;
  }

  // Text that stays goes above the block that moves.
  template <class F>
  void above(F&& print) {
    erase();
    print();
    draw(true);
  }
  void erase() {
    if (drawn_ == 0) return;
    write_all(descriptor_, "\r\x1b[" + std::to_string(drawn_) + "A\x1b[J");
    drawn_ = 0;
  }
  void finish() {
    begun_.clear();  // whoever began it writes it again
    draw(true);
    active_ = false;
    drawn_ = 0;
  }

  void draw(bool now) {
    if (!active_ || hidden_ > 0 || (!now && Clock::now() - drawn_at_ < kRedrawEvery)) return;
    drawn_at_ = Clock::now();
    std::vector<std::string> lines;
    if (!begun_.empty()) lines.push_back(begun_);
    lines.push_back(progress_line());
    lines.push_back(loss_line());
    for (const auto& [name, line] : workers_) lines.push_back(worker_line(name, line));
    lines.push_back(waiting_.empty() ? " " : "  " + waiting_);
    const std::size_t columns = width();
    // What others have begun may have symbols of two columns: where it does not fit, the terminal cuts it.
    std::string text = "\x1b[?7l";
    for (const std::string& line : lines) text += "\x1b[2K" + fit(line, columns) + "\n";
    text += drawn_ > lines.size() ? "\x1b[J\x1b[?7h" : "\x1b[?7h";
    if (drawn_ > 0 && text == drawn_text_) return;
    write_all(descriptor_, (drawn_ > 0 ? "\r\x1b[" + std::to_string(drawn_) + "A" : "") + text);
    drawn_ = lines.size();
    drawn_text_ = std::move(text);
  }
  [[nodiscard]] std::string progress_line() const {
    if (started_.steps == 0) return "  measuring";
    const double fraction = static_cast<double>(steps_done_) / static_cast<double>(started_.steps);
    const double left =
        rate_ > 0 ? static_cast<double>((started_.steps - steps_done_) * started_.global_batch) / rate_ : -1;
    char numbers[160];
    std::snprintf(numbers, sizeof numbers, "  %3.0f %%  step %llu/%llu  epoch %llu", 100 * fraction,
                  static_cast<unsigned long long>(steps_done_), static_cast<unsigned long long>(started_.steps),
                  static_cast<unsigned long long>(step_.epoch));
    return "  " + progress_bar(fraction, 28) + numbers + (left >= 0 ? "  " + duration_text(left) + " left" : "");
  }
  [[nodiscard]] std::string loss_line() const {
    if (losses_.empty()) return "  loss –";
    char numbers[64];
    std::snprintf(numbers, sizeof numbers, "  loss %.4f  ", losses_.back());
    return numbers + sparkline(losses_, 28) + "  " + count_text(rate_) + " samples/s";
  }
  [[nodiscard]] std::string worker_line(const std::string& name, const WorkerLine& line) const {
    if (!line.present) return "  " + name + "  " + line.state;
    const double share = step_.samples > 0 ? static_cast<double>(line.samples) / static_cast<double>(step_.samples) : 0;
    char numbers[160];
    std::snprintf(numbers, sizeof numbers, "  %5llu samples  %3.0f %%  computes %.0f ms, waits %.0f ms",
                  static_cast<unsigned long long>(line.samples), 100 * share, 1e3 * line.compute_s, 1e3 * line.wait_s);
    return "  " + progress_bar(share, 10) + "  " + name + numbers +
           (line.bytes > 0 ? "  " + count_text(static_cast<double>(line.bytes)) + "B" : "");
  }

  std::mutex mutex_;
  int descriptor_;
  std::unique_ptr<Observer> plain_;
  RunStarted started_;
  StepDone step_;
  std::map<std::string, WorkerLine> workers_;
  std::vector<double> losses_;
  std::string waiting_, begun_, drawn_text_;
  std::size_t hidden_ = 0;
  double rate_ = 0;
  std::uint64_t steps_done_ = 0;
  std::size_t drawn_ = 0;
  bool active_ = false;
  Clock::time_point drawn_at_{};
};

}  // namespace

std::unique_ptr<Display> make_terminal_observer(int descriptor) {
  return std::make_unique<TerminalObserver>(descriptor);
}

}  // namespace motley::observe
