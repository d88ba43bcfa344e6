#include "report/screen.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/format.h"

namespace motley::report {
namespace {

std::string repeat(std::string_view symbol, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += symbol;
  return out;
}

constexpr std::size_t kProgressColumns = 28, kCurveColumns = 28, kShareColumns = 10;

std::string progress_line(const Board& board) {
  const std::uint64_t steps = board.run ? board.run->steps : 0;
  if (steps == 0) return "  measuring";
  const double fraction = static_cast<double>(board.steps_done) / static_cast<double>(steps);
  std::string line =
      "  " + progress_bar(fraction, kProgressColumns) +
      formatted("  %3.0f %%  step %llu/%llu  epoch %llu", 100 * fraction,
                static_cast<unsigned long long>(board.steps_done), static_cast<unsigned long long>(steps),
                static_cast<unsigned long long>(board.step ? board.step->epoch : 0));
  if (board.samples_per_s <= 0 || board.steps_done > steps) return line;
  const auto samples_left = static_cast<double>((steps - board.steps_done) * board.run->global_batch);
  return line + "  " + duration_text(samples_left / board.samples_per_s) + " left";
}

std::string loss_line(const Board& board) {
  if (board.loss.empty()) return "  loss –";
  std::vector<double> means;
  for (const Curve::Bucket& bucket : board.loss.buckets()) means.push_back(bucket.mean());
  return formatted("  loss %.4f  ", board.loss.buckets().back().last) + sparkline(means, kCurveColumns) + "  " +
         count_text(board.samples_per_s) + " samples/s";
}

std::string worker_line(const std::string& name, const Board::Worker& worker, const Board& board) {
  if (!worker.present) return "  " + name + "  " + worker.change;
  const WorkerPart& part = worker.part;
  const std::uint64_t samples = board.step ? board.step->samples : 0;
  const double share = samples > 0 ? static_cast<double>(part.samples) / static_cast<double>(samples) : 0;
  const std::uint64_t bytes = part.sent_bytes + part.received_bytes;
  return "  " + progress_bar(share, kShareColumns) + "  " + name +
         formatted("  %5llu samples  %3.0f %%  computes %.0f ms, waits %.0f ms",
                   static_cast<unsigned long long>(part.samples), 100 * share, 1e3 * part.compute_s,
                   1e3 * part.wait_s) +
         (bytes > 0 ? "  " + count_text(static_cast<double>(bytes)) + "B" : "");
}

}  // namespace

std::vector<std::string> screen_of(const Board& board) {
  std::vector<std::string> lines{progress_line(board), loss_line(board)};
  for (const auto& [name, worker] : board.workers) lines.push_back(worker_line(name, worker, board));
  lines.push_back(board.waiting.empty() ? " " : "  " + board.waiting);
  return lines;
}

std::string progress_bar(double fraction, std::size_t width) {
  const double clamped = std::isfinite(fraction) ? std::clamp(fraction, 0.0, 1.0) : 0.0;
  const auto halves = static_cast<std::size_t>(std::lround(clamped * 2 * static_cast<double>(width)));
  const std::size_t full = halves / 2;
  const bool half = halves % 2 == 1;
  return repeat("━", full) + (half ? "╸" : "") + repeat("─", width - full - (half ? 1 : 0));
}

std::string sparkline(std::span<const double> values, std::size_t width) {
  constexpr std::array<std::string_view, 8> kHeights{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const std::size_t columns = std::min(width, values.size());
  if (columns == 0) return {};
  std::string out;
  std::array<double, 256> means{};
  const std::size_t shown = std::min(columns, means.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const std::size_t first = i * values.size() / shown;
    const std::size_t last = std::max(first + 1, (i + 1) * values.size() / shown);
    double sum = 0;
    for (std::size_t j = first; j < last; ++j) sum += values[j];
    means[i] = sum / static_cast<double>(last - first);
  }
  const auto [low, high] = std::minmax_element(means.begin(), means.begin() + static_cast<std::ptrdiff_t>(shown));
  const double range = *high - *low;
  for (std::size_t i = 0; i < shown; ++i) {
    const double height = range > 0 ? (means[i] - *low) / range : 0;
    out += kHeights[std::isfinite(height) ? std::min<std::size_t>(7, static_cast<std::size_t>(height * 8)) : 7];
  }
  return out;
}

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  const auto total = static_cast<long long>(std::llround(std::min(seconds, 1e9)));
  if (total < 60) return formatted("%lld s", total);
  if (total < 3600) return formatted("%lld min %02lld s", total / 60, total % 60);
  return formatted("%lld h %02lld min", total / 3600, total % 3600 / 60);
}

std::string count_text(double value) {
  if (value < 1000) return formatted("%.0f", value);
  if (value < 1e6) return formatted("%.1f k", value / 1e3);
  return formatted("%.2f M", value / 1e6);
}

std::string fit(std::string_view text, std::size_t columns) {
  std::size_t used = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool starts_symbol = (static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U;
    if (starts_symbol && used++ == columns) return std::string(text.substr(0, i));
  }
  return std::string(text);
}

}  // namespace motley::report
