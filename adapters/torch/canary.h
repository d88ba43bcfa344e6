#pragma once
// A sum that every pass of a task adds to, on the device: where it does not come to what it must, the device left out
// something that it was asked for. One thread at a time.

#include <torch/torch.h>

#include <cstdint>
#include <optional>
#include <random>
#include <string>

namespace motley::torch_adapter {

class Canary {
 public:
  explicit Canary(const at::Device& device)
      : added_(at::zeros({kElements}, device)), sum_(at::zeros({kElements}, device)), seen_(at::zeros({kElements})) {}

  void begin() {
    number_ = 1 + random_() % (kNumberMax - 1);
    expected_ = random_() % kNumberMax;
    marks_ = 0;
    added_.fill_(static_cast<double>(number_));
    sum_.fill_(static_cast<double>(expected_));
  }
  /// Among the work of a pass.
  void mark() {
    if (marks_ == kMarksMax) return;
    ++marks_;
    expected_ += number_;
    sum_.add_(added_);
  }
  /// Waits for the device. What is wrong with what it did since begin().
  std::optional<std::string> fault() {
    seen_.copy_(sum_);
    const auto [least, most] = at::aminmax(seen_);
    const auto low = least.item<double>(), high = most.item<double>(), expected = static_cast<double>(expected_);
    if (low == expected && high == expected) return std::nullopt;
    return "a sum that each pass adds to came to " + std::to_string(low) + " to " + std::to_string(high) +
           ", expected " + std::to_string(expected_);
  }

 private:
  // Two pages of 16 KB, since a fault was seen that left out all but the first. What the marks come to is exact.
  static constexpr std::int64_t kElements = 8192;
  static constexpr std::uint64_t kMarksMax = 4000, kNumberMax = 4096;

  std::minstd_rand random_{std::random_device()()};
  at::Tensor added_, sum_, seen_;
  std::uint64_t number_ = 0, expected_ = 0, marks_ = 0;
};

}  // namespace motley::torch_adapter
