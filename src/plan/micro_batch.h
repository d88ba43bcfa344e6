#pragma once
// How many samples a device takes at once: the most that fit its memory, found by doubling. Going over may mean being
// killed, so a size is tried only where what smaller ones took says that it fits. Pure.

#include <cstdint>
#include <optional>
#include <vector>

namespace motley::plan {

/// Bytes in use at once by a run of m samples: fixed + per_sample · m, by least squares over the sizes seen.
class PeakModel {
 public:
  /// `fixed`: what is in use without any samples (weights, gradients).
  explicit PeakModel(std::uint64_t fixed) noexcept : floor_(static_cast<double>(fixed)) {}
  /// Of several peaks of one size the highest counts.
  void record(std::uint32_t samples, std::uint64_t peak);
  /// Never below a peak seen at this or a smaller size. REQUIRES a record.
  [[nodiscard]] double bytes(double samples) const noexcept;
  /// What of it comes with the samples.
  [[nodiscard]] double growth(double samples) const noexcept;
  [[nodiscard]] bool empty() const noexcept { return seen_.empty(); }

 private:
  struct Seen {
    double samples, peak;
  };
  double floor_;
  std::vector<Seen> seen_;  // by size
  double fixed_ = 0, per_sample_ = 0;
};

/// The search. Starts at 1; `most` is what the device is fast with, and never exceeded. What is over a share stays: a
/// share is computed in several micro-batches.
class MicroBatch {
 public:
  struct Run {
    std::uint32_t samples = 0;      // the most that went at once
    std::uint64_t peak = 0;         // bytes in use at once
    std::uint64_t budget = 0;       // bytes that may be in use at once, now
    double seconds_per_sample = 0;  // 0: not a measure of this size's speed
  };

  MicroBatch(std::uint32_t most, std::uint64_t fixed_bytes, std::uint64_t budget) noexcept;

  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }
  /// The search goes on: the next run tells more.
  [[nodiscard]] bool growing() const noexcept { return growing_; }

  void ran(const Run& run);
  /// The size did not fit; half of it is next. False: it was 1.
  bool out_of_memory() noexcept;

 private:
  struct Speed {
    std::uint32_t samples = 0;
    double seconds_per_sample = 0;  // the least
    int slow = 0;                   // runs in a row that were clearly slower than those of a smaller size
  };

  enum class Verdict : std::uint8_t { good, doubtful, worse };
  Verdict judge_speed(const Run& run);
  [[nodiscard]] bool fits(double samples, double caution, std::uint64_t budget) const noexcept;

  std::uint32_t size_ = 1;
  std::uint32_t most_;
  std::uint64_t budget_;  // at the start: later ones may still hold what the rest of the process will want
  PeakModel model_;
  std::vector<Speed> speeds_;  // by size
  bool growing_ = true;
};

}  // namespace motley::plan
