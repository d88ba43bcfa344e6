#include "plan/codec_choice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "plan/link_model.h"

namespace motley::plan {
namespace {

using codec::CodecId;

constexpr double kResidualMax = 3;         // lengths of the gradient sum
constexpr std::uint32_t kRemembered = 32;  // passes
constexpr double kNewest = 0.25;           // of the mean of a handful
constexpr std::size_t kBlock = 4096;       // elements; their bytes tell how the codecs compare
constexpr double kNobodySees = 0.002;      // of a step, however even steps are
// Student's t by degrees of freedom from 1 on: one side, 99 of 100.
constexpr std::array kStudentsT{31.82, 6.965, 4.541, 3.747, 3.365, 3.143, 2.998, 2.896, 2.821, 2.764, 2.5};

CodecId exacter(CodecId codec) { return static_cast<CodecId>(static_cast<std::uint8_t>(codec) - 1); }
CodecId fewer(CodecId codec) { return static_cast<CodecId>(static_cast<std::uint8_t>(codec) + 1); }

}  // namespace

void CodecChoice::Recent::add(double value) noexcept {
  records = std::min(records + 1, kRemembered);
  const double part = 1.0 / records, off = value - mean;
  mean += part * off;
  variance = (1 - part) * (variance + part * off * off);
  newest += std::max(part, kNewest) * (value - newest);
}

double CodecChoice::Recent::doubt() const noexcept {
  if (records < 2) return std::numeric_limits<double>::infinity();
  const std::size_t freedom = records - 1;
  return kStudentsT[std::min(freedom, kStudentsT.size()) - 1] * std::sqrt(variance / static_cast<double>(freedom));
}

double CodecChoice::Recent::least_doubt() const noexcept {
  return std::max(kStudentsT.back() * std::sqrt(variance / (kRemembered - 1)), kNobodySees * mean);
}

double CodecChoice::Recent::now() const noexcept { return std::abs(newest - mean) > doubt() ? newest : mean; }

double CodecChoice::size(CodecId codec) const noexcept {
  const auto bytes = [](CodecId of) { return static_cast<double>(codec::encoded_bytes(of, kBlock)); };
  return 1 - follows_ + follows_ * bytes(codec) / bytes(CodecId::fp32);
}

double CodecChoice::exposed(CodecId codec) const noexcept {
  const double follows = std::max(0.0, exposed_.mean - constant_);
  return exposed_.mean + follows * (size(codec) / size(codec_) - 1);
}

double CodecChoice::move_to(CodecId codec) noexcept {
  if (codec == codec_) return 1;
  const double factor = exposed_.mean > 0 ? exposed(codec) / exposed_.mean : size(codec) / size(codec_);
  size_before_ = exposed_.records > 0 ? size(codec_) : 0;
  exposed_before_ = exposed_.now();
  exposed_ = step_ = {};
  codec_ = codec;
  return factor;
}

// What two codecs left on the wire says what part of it goes with the bytes.
void CodecChoice::learn_constant() noexcept {
  if (size_before_ == 0) return;
  const double a_size = (exposed_before_ - exposed_.mean) / (size_before_ - size(codec_));
  constant_ = std::clamp(exposed_.mean - a_size * size(codec_), 0.0, exposed_.mean);
  if (exposed_.records == kRemembered) size_before_ = 0;  // from now on it may be the link that changes
}

double CodecChoice::pass(double compute_seconds, double exposed_seconds, const ByCodec& processors) noexcept {
  if (std::exchange(cold_, false)) return 1;
  exposed_.add(exposed_seconds);
  step_.add(compute_seconds + exposed_seconds);
  learn_constant();
  const auto seconds = [&](CodecId codec) { return exposed(codec) + of(processors, codec); };
  double best = seconds(CodecId::fp32);
  for (CodecId codec = CodecId::fp32; codec < least_;) {
    codec = fewer(codec);
    best = std::min(best, seconds(codec));
  }
  const auto exactest = [&](double more) {
    CodecId codec = CodecId::fp32;
    while (codec < least_ && seconds(codec) > best + more) codec = fewer(codec);
    return codec;
  };
  const double unseen = step_.least_doubt();
  if (seconds(codec_) > best + std::max(step_.doubt(), unseen)) return move_to(exactest(unseen));
  // Bits come back where steps show less than half of that, so that noise does not send them to and fro.
  if (step_.records < kRemembered) return 1;
  return move_to(std::min(codec_, exactest(unseen / 2)));
}

double CodecChoice::version(double seconds) noexcept {
  if (codec_ == CodecId::fp32 && seconds >= kSlowVersion) move_to(std::min(CodecId::int8, least_));
  return size(codec_);
}

double CodecChoice::residual(double ratio) noexcept {
  if (!(ratio > kResidualMax) || codec_ == CodecId::fp32) return 1;
  least_ = exacter(codec_);
  return move_to(least_);
}

}  // namespace motley::plan
