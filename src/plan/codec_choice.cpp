#include "plan/codec_choice.h"

#include <algorithm>
#include <utility>

#include "plan/link_model.h"

namespace motley::plan {
namespace {

using codec::CodecId;

constexpr double kHoldsUp = 0.1;       // of a pass: what is spent on the wire for which fewer bits are worth it
constexpr double kHoldsUpMuch = 0.5;   // for which nobody waits until it is certain
constexpr double kAmple = 0.05;        // of a pass, with more bits
constexpr double kSaved = 0.9;         // of the time on the wire: a codec that leaves more is of no use
constexpr double kResidualMax = 3;     // lengths of the gradient sum
constexpr std::uint32_t kCertain = 8;  // passes
constexpr std::uint32_t kAtOnce = 2;
constexpr std::uint32_t kAmplePasses = 64;
constexpr std::size_t kBlock = 4096;  // elements; their bytes tell how the codecs compare

CodecId exacter(CodecId codec) { return static_cast<CodecId>(static_cast<std::uint8_t>(codec) - 1); }
CodecId fewer(CodecId codec) { return static_cast<CodecId>(static_cast<std::uint8_t>(codec) + 1); }

}  // namespace

double CodecChoice::size(CodecId codec) const noexcept {
  const auto bytes = [](CodecId of) { return static_cast<double>(codec::encoded_bytes(of, kBlock)); };
  return 1 - follows_ + follows_ * bytes(codec) / bytes(CodecId::fp32);
}

double CodecChoice::move_to(CodecId codec) noexcept {
  passes_ = slow_ = ample_ = 0;
  return size(codec) / size(std::exchange(codec_, codec));
}

double CodecChoice::pass(double compute_seconds, double exposed_seconds) noexcept {
  const auto part = [&](double exposed) { return exposed / (compute_seconds + exposed); };
  ++passes_;
  slow_ = part(exposed_seconds) > kHoldsUp ? slow_ + 1 : 0;
  if (exposed_before_ > 0 && passes_ == kCertain && exposed_seconds > kSaved * std::exchange(exposed_before_, 0)) {
    least_ = before_;
    return move_to(least_);
  }
  const auto with = [&](CodecId codec) { return exposed_seconds * size(codec) / size(codec_); };
  if (slow_ >= (part(exposed_seconds) > kHoldsUpMuch ? kAtOnce : kCertain) && codec_ < least_) {
    CodecId next = fewer(codec_);
    while (next < least_ && part(with(next)) > kHoldsUp) next = fewer(next);
    before_ = codec_;
    exposed_before_ = exposed_seconds;
    return move_to(next);
  }
  if (codec_ == CodecId::fp32) return 1;
  ample_ = part(with(exacter(codec_))) < kAmple ? ample_ + 1 : 0;
  return ample_ < kAmplePasses ? 1 : move_to(exacter(codec_));
}

double CodecChoice::version(double seconds) noexcept {
  if (codec_ == CodecId::fp32 && seconds >= kSlowVersion) move_to(std::min(CodecId::int8, least_));
  return size(codec_);
}

double CodecChoice::residual(double ratio) noexcept {
  if (!(ratio > kResidualMax) || codec_ == CodecId::fp32) return 1;
  exposed_before_ = 0;
  least_ = exacter(codec_);
  return move_to(least_);
}

}  // namespace motley::plan
