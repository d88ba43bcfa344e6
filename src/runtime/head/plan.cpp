#include "runtime/head/plan.h"

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>

#include "base/format.h"
#include "runtime/head/head.h"
#include "runtime/head/plan_modes.h"

namespace motley::runtime {
namespace {

// The time models have settled after so many steps with the same workers.
constexpr std::uint64_t kStepsMin = 20;

/// Gone with all that is in it.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "motley-plan-XXXXXX").string();
    if (::mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

/// Gone, too: nobody joins any more.
class TokenFile {
 public:
  explicit TokenFile(std::filesystem::path path) : path_(std::move(path)) {}
  ~TokenFile() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove(path_, ignored);
  }
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;

 private:
  std::filesystem::path path_;
};

/// Lets through who joins and leaves, and watches how long nothing has changed.
class Watch final : public report::Sink {
 public:
  using Clock = std::chrono::steady_clock;
  explicit Watch(report::Sink& out) : out_(out) {}

  void take(const report::Event& event) override {
    std::visit(report::overloaded{[this](const report::RunStarted& e) { run(e); },
                                  [&](const report::WorkerChanged&) {
                                    out_.take(event);
                                    begin_anew();
                                  },
                                  [this](const report::StepDone& e) { count_step(e); },
                                  [&](const report::Failure&) { out_.take(event); },
                                  [&](const report::Note&) { out_.take(event); },
                                  [&](const report::Waiting&) { out_.take(event); },
                                  [&](const report::Download&) { out_.take(event); }, [](const auto&) {}},
               event);
  }
  void end() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    happened_.notify_all();
  }
  /// True when the same workers have taken so many steps for so long; false when end() was called.
  bool until_measured(double seconds) {
    std::unique_lock lock(mutex_);
    happened_.wait(lock, [&] {
      const std::chrono::duration<double> quiet = Clock::now() - changed_;
      return ended_ || (steps_ >= kStepsMin && quiet.count() >= seconds);
    });
    return !ended_;
  }

  /// Of a step, in the mean.
  double bytes() {
    const std::lock_guard lock(mutex_);
    return steps_ > 0 ? bytes_ / static_cast<double>(steps_) : 0;
  }

 private:
  void run(report::RunStarted shown) {
    shown.name += " (measuring; nothing is kept)";
    shown.steps = 0;
    out_.take(shown);
  }
  void begin_anew() {
    const std::lock_guard lock(mutex_);
    changed_ = Clock::now();
    steps_ = 0;
    bytes_ = 0;
  }
  void count_step(const report::StepDone& step) {
    {
      const std::lock_guard lock(mutex_);
      ++steps_;
      for (const report::WorkerPart& part : step.workers)
        bytes_ += static_cast<double>(part.sent_bytes + part.received_bytes);
    }
    happened_.notify_all();
  }

  report::Sink& out_;
  std::mutex mutex_;
  std::condition_variable happened_;
  Clock::time_point changed_ = Clock::now();
  std::uint64_t steps_ = 0;
  double bytes_ = 0;  // on the wire in these steps
  bool ended_ = false;
};

std::string link_text(const report::PlanMade::Share& share) {
  const auto megabits = [](double bytes_per_s) { return 8e-6 * bytes_per_s; };
  std::string text;
  if (share.up_bytes_per_s > 0) text += formatted("; sends %.3g Mbit/s", megabits(share.up_bytes_per_s));
  if (share.down_bytes_per_s > 0)
    text += formatted(text.empty() ? "; receives %.3g Mbit/s" : ", receives %.3g", megabits(share.down_bytes_per_s));
  return text;
}

void print_table(const report::PlanMade& plan, std::uint64_t samples, report::Sink& sink) {
  for (const report::PlanMade::Share& share : plan.shares) {
    const std::string part = share.samples == 0
                                 ? std::string("left out")
                                 : formatted("%llu of %llu samples, computes %.1f ms, waits %.1f ms for the wire",
                                             static_cast<unsigned long long>(share.samples),
                                             static_cast<unsigned long long>(plan.global_batch), 1e3 * share.compute_s,
                                             1e3 * share.exposed_s);
    sink.take(
        report::Note{formatted("  %-20s alone %.0f samples/s; ", share.worker.c_str(), share.alone_samples_per_s) +
                     part + link_text(share)});
  }
  sink.take(report::Note{
      formatted("  an epoch takes %.1f s; limited by ", static_cast<double>(samples) / plan.samples_per_s) +
      plan.limit});
}

TrainOptions measuring(const PlanOptions& options, const std::filesystem::path& directory) {
  TrainOptions train = options.train;
  train.run_dir = (directory / "run").string();
  // A learning rate of zero takes the same time, and nothing can diverge.
  for (const char* key : {"train.steps=1000000000", "optimizer.lr=0",
                          "data.test_uri=", "train.checkpoint_seconds=86400", "train.mode=exact"})
    train.overrides.emplace_back(key);
  return train;
}

}  // namespace

Status plan(const PlanOptions& options, ModelProvider& provider, report::Sink& sink, StopSource& stop) {
  const TemporaryDirectory directory;
  if (directory.path().empty()) {
    return Error{ErrorCode::io,
                 "no directory for temporary files can be made in " + std::filesystem::temp_directory_path().string(),
                 "set TMPDIR to a directory that can be written"};
  }
  const TrainOptions train = measuring(options, directory.path());
  Watch watch(sink);
  Head head(train, provider, watch);
  if (Status status = head.open(); !status) return status;
  const TokenFile token_file(train.token_file);
  head.start(false, [&watch] { watch.end(); });
  stop.on_request([&watch] { watch.end(); });
  if (options.begun) options.begun(head.run().token);
  const bool measured = watch.until_measured(options.seconds);
  if (!measured && !stop.requested()) {
    stop.on_request({});
    return head.wait();  // the run failed
  }
  const config::RunConfig& config = head.run().config;
  std::vector<std::uint64_t> batches = options.global_batches;
  if (batches.empty()) batches.push_back(config.global_batch.samples);
  const std::size_t shown = batches.size();
  // A round takes as long as a step of its samples.
  for (std::size_t i = 0; i < shown; ++i) batches.push_back(batches[i] * config.rounds_steps);
  const double exchanged = watch.bytes();
  const auto forecasts = head.host().forecast(batches).get();
  head.host().stop();
  (void)head.wait();  // it was interrupted, as it should be
  stop.on_request({});
  if (!measured) return Error{ErrorCode::interrupted, "interrupted before everything was measured", "motley plan"};
  const bool text_model = config.model_kind.starts_with("gpt");
  for (std::size_t i = 0; i < shown; ++i) {
    if (!forecasts[i])
      return Error{ErrorCode::internal, "a worker is not measured yet", "measure longer: --seconds 30"};
    const report::PlanMade made = event_of(*forecasts[i]);
    sink.take(made);
    print_table(made, head.run().epoch_samples(), sink);
    sink.take(report::Note{line_of(outlook_of(made, 0, exchanged), text_model)});
    const std::optional<engine::Planned>& round = forecasts[shown + i];
    if (!round || made.shares.size() < 2) continue;
    sink.take(report::Note{line_of(outlook_of(event_of(*round), config.rounds_steps, exchanged), text_model)});
  }
  return {};
}

}  // namespace motley::runtime
