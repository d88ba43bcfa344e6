#include <algorithm>
#include <chrono>
#include <cstdarg>
#include <cstdio>

#include "observe/observer.h"
#include "observe/write_all.h"

namespace motley::observe {
namespace {

std::string format(const char* pattern, ...) __attribute__((format(printf, 1, 2)));
std::string format(const char* pattern, ...) {
  char buffer[1024];
  va_list arguments;
  va_start(arguments, pattern);
  const int length = std::vsnprintf(buffer, sizeof buffer, pattern, arguments);
  va_end(arguments);
  return {buffer, static_cast<std::size_t>(std::max(0, std::min<int>(length, sizeof buffer - 1)))};
}

std::string noise_text(const Noise& noise) {
  if (noise.records == 0) {
    return "gradient noise: unknown, because no step had two contributions to compare; it needs a second worker";
  }
  if (!(noise.scale > 0))
    return "gradient noise: not known yet; the steps so far are too few or too noisy to tell it from the signal";
  return format("gradient noise scale: %.0f samples", noise.scale) +
         (noise.useful_batch > 0 ? format("; a global batch of about %.0f makes the most progress a second here",
                                          std::max(1.0, noise.useful_batch))
                                 : std::string());
}

class PlainObserver final : public Observer {
 public:
  PlainObserver(int descriptor, double seconds_between) : descriptor_(descriptor), between_(seconds_between) {}

  void run(const RunStarted& e) override {
    steps_ = e.steps;
    const std::string steps = e.steps > 0 ? std::to_string(e.steps) + " " : "";
    line(format("%s: %llu parameters, %ssteps of %llu samples, in %s", e.name.c_str(),
                static_cast<unsigned long long>(e.parameters), steps.c_str(),
                static_cast<unsigned long long>(e.global_batch), e.directory.c_str()));
    if (e.first_step > 0) line(format("going on after step %llu", static_cast<unsigned long long>(e.first_step)));
    if (e.plaintext) line("NOT ENCRYPTED: everybody on this network can read and change what is sent (--plaintext)");
    if (!e.join.empty())
      line("on another machine:  motley join " + e.join + (e.join_with.empty() ? "" : " " + e.join_with));
    if (!e.token_file.empty()) line("the join token is in " + e.token_file);
  }
  void worker(const WorkerChanged& e) override {
    line(e.worker + " " + e.change + (e.description.empty() ? "" : " (" + e.description + ")") +
         (e.reason.empty() ? "" : ": " + e.reason));
  }
  void plan(const PlanMade& e) override {
    line(format("plan for %llu samples a step: %.0f samples/s; ", static_cast<unsigned long long>(e.global_batch),
                e.samples_per_s) +
         e.recommendation);
  }
  void step(const StepDone& e) override {
    if (e.steps > 0) steps_ = e.steps;
    const auto now = std::chrono::steady_clock::now();
    if (std::chrono::duration<double>(now - last_).count() < between_ && e.step + 1 != steps_) return;
    last_ = now;
    std::string parts;
    for (const WorkerPart& part : e.workers) {
      parts += (parts.empty() ? "  " : ", ") + part.worker + " " + std::to_string(part.samples);
    }
    line(format("step %llu/%llu  loss %.6f  %.0f samples/s", static_cast<unsigned long long>(e.step) + 1,
                static_cast<unsigned long long>(steps_), e.loss, e.samples_per_s) +
         parts);
  }
  void eval(const EvalDone& e) override {
    line(format("evaluation after step %llu (epoch %llu): loss %.6f", static_cast<unsigned long long>(e.step),
                static_cast<unsigned long long>(e.epoch), e.loss) +
         (e.has_accuracy ? format(", accuracy %.4f", e.accuracy) : std::string()) +
         (e.exact ? "" : " (of the weights that workers hold)"));
  }
  void checkpoint(std::uint64_t step, const std::string& path) override {
    line(format("checkpoint of step %llu: %s", static_cast<unsigned long long>(step), path.c_str()));
  }
  void done(const Done& e) override {
    line(format("done: %llu steps, %llu samples in %.1f s (%.0f samples/s", static_cast<unsigned long long>(e.steps),
                static_cast<unsigned long long>(e.samples), e.seconds, e.samples_per_s) +
         (e.predicted_samples_per_s > 0 ? format(", predicted %.0f", e.predicted_samples_per_s) : std::string()) +
         format("), loss %.6f", e.loss) +
         (e.has_accuracy ? format(", test accuracy %.4f", e.accuracy) : std::string()));
    line(noise_text(e.noise));
    line("checkpoint: " + e.checkpoint);
  }
  void error(const Error& e) override {
    line("error (" + std::string(to_word(e.code)) + "): " + e.message);
    if (!e.hint.empty()) line("  try: " + e.hint);
  }
  void note(const std::string& text) override { line(text); }
  // What still holds the run up after a while is worth a line; what changes every second is not.
  void waiting(const std::string& text) override {
    if (text != waiting_) {
      waiting_ = text;
      waiting_since_ = std::chrono::steady_clock::now();
      said_waiting_ = false;
    } else if (!said_waiting_ && !text.empty() &&
               std::chrono::steady_clock::now() - waiting_since_ > std::chrono::seconds(2)) {
      said_waiting_ = true;
      line(text);
    }
  }
  void download(const std::string& file, std::uint64_t done, std::uint64_t total) override {
    const int percent = total > 0 ? static_cast<int>(100 * done / total) : -1;
    if (file == file_ && percent < percent_ + 10) return;
    file_ = file;
    percent_ = percent;
    line(percent < 0 ? "downloading " + file : format("downloading %s: %d %%", file.c_str(), percent));
  }

 private:
  void line(const std::string& text) { write_all(descriptor_, text + "\n"); }

  int descriptor_;
  double between_;
  std::uint64_t steps_ = 0;
  std::chrono::steady_clock::time_point last_{};
  std::string waiting_, file_;
  std::chrono::steady_clock::time_point waiting_since_{};
  bool said_waiting_ = false;
  int percent_ = -10;
};

}  // namespace

std::unique_ptr<Observer> make_plain_observer(int descriptor, double seconds_between) {
  return std::make_unique<PlainObserver>(descriptor, seconds_between);
}

}  // namespace motley::observe
