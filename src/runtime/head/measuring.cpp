#include "runtime/head/measuring.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <string_view>

#include "codec/codec.h"
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
                                  [&](const report::Waiting&) { out_.take(event); }, [](const auto&) {}},
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

TrainOptions measuring(const MeasuringOptions& options, const std::filesystem::path& directory) {
  TrainOptions train = options.train;
  train.run_dir = (directory / "run").string();
  train.resume = false;
  for (const char* key :
       {"train.steps=1000000000", "model.tested=false", "train.checkpoint_seconds=86400", "train.mode=exact"})
    train.overrides.emplace_back(key);
  return train;
}

Result<Measured> predict(Head& head, const MeasuringOptions& options, const config::RunConfig& asked) {
  const Run& run = head.run();
  std::vector<std::uint64_t> batches = options.global_batches;
  if (batches.empty()) batches.push_back(asked.global_batch);
  const std::size_t count = batches.size();
  const auto forecasts = head.host().forecast(batches, asked.rounds_steps).get();
  Measured found{.samples = run.epoch_samples(),
                 .local_steps = asked.rounds_steps,
                 .outline = outline_of(asked, run.inputs.train->size(), run.initial.layout.parameters()),
                 .no_rounds = run.against_rounds(asked),
                 .overlap = asked.rounds_overlap == "next"};
  for (std::size_t i = 0; i < count; ++i) {
    if (!forecasts[i]) return Error{ErrorCode::usage, "a worker is not measured yet", "measure longer: --seconds 30"};
    Measured::Batch& batch = found.batches.emplace_back(Measured::Batch{.exact = runtime::event_of(*forecasts[i])});
    if (forecasts[count + i] && batch.exact.shares.size() > 1)
      batch.round = round_of(runtime::event_of(*forecasts[count + i]), found.overlap);
  }
  return found;
}

}  // namespace

Result<Measured> measure(const MeasuringOptions& options, ModelProvider& provider, report::Sink& sink,
                         StopSource& stop) {
  const TemporaryDirectory directory;
  if (directory.path().empty()) {
    return Error{ErrorCode::io,
                 "no directory for temporary files can be made in " + std::filesystem::temp_directory_path().string(),
                 "set TMPDIR to a directory that can be written"};
  }
  const Result<config::RunConfig> asked = read_config(options.train);
  if (!asked) return asked.error();
  if (!asked->shares.empty()) {
    return Error{ErrorCode::input,
                 "train.shares cannot be used here: motley plan and train.mode=auto predict which shares are best",
                 "remove train.shares, or train with train.mode=exact"};
  }
  const TrainOptions train = measuring(options, directory.path());
  Watch watch(sink);
  Head head(train, provider, watch);
  if (Status status = head.open(); !status) return status.error();
  const TokenFile token_file(options.goes_on ? std::string() : train.token_file);
  head.start(options.goes_on, [&watch] { watch.end(); });
  stop.on_request([&watch] { watch.end(); });
  if (options.begun) options.begun(head.run().token);
  const bool enough = watch.until_measured(options.seconds);
  if (!enough && !stop.requested()) {
    stop.on_request({});
    const Status status = head.wait();  // the run failed
    return status ? Error{ErrorCode::usage, "the run ended before everything was measured",
                          "measure for less time: --seconds 5"}
                  : status.error();
  }
  Result<Measured> found = predict(head, options, *asked);
  if (found) found->exchanged = watch.bytes();
  head.host().stop();
  (void)head.wait();  // it was interrupted, as it should be
  stop.on_request({});
  if (!enough) return Error{ErrorCode::interrupted, "interrupted before everything was measured", "motley plan"};
  return found;
}

Result<config::RunConfig> read_config(const TrainOptions& options) {
  return config::load({.target = options.target, .text = options.text, .overrides = options.overrides});
}

}  // namespace motley::runtime
