#include "plan/link_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace motley::plan {
namespace {

constexpr double kShortest = 0.02;  // seconds
constexpr double kFaster = 0.5;     // of the way to a faster transfer
constexpr double kSlower = 0.1;
constexpr double kFasterAtOnce = 2;     // times as fast
constexpr double kHeldUp = 0.8;         // of what a sender reached before
constexpr double kFair = 0.6;           // of what the fastest of them has
constexpr double kBeside = 0.2;         // of a sender's time, others' time beside it
constexpr std::uint32_t kBelieved = 3;  // records

double overlap(const Sender& sender, double begin, double end) noexcept {
  return std::max(0.0, std::min(end, sender.end) - std::max(begin, sender.begin));
}

/// Bytes a second of all of them.
double carried(std::span<const Sender> senders, double begin, double end) noexcept {
  double bytes = 0;
  for (const Sender& sender : senders) bytes += sender.speed() * overlap(sender, begin, end);
  return bytes / (end - begin);
}

bool beside_others(const Sender& sender, std::span<const Sender> senders) noexcept {
  double others = sender.begin - sender.end;  // itself is among them
  for (const Sender& other : senders) others += overlap(other, sender.begin, sender.end);
  return others >= kBeside * (sender.end - sender.begin);
}

}  // namespace

Transfer busy_part(std::span<const Departure> departures, double arrived) noexcept {
  Transfer part;
  Transfer fastest;
  for (auto departure = departures.rbegin(); departure != departures.rend(); ++departure) {
    part = {part.bytes + departure->bytes, arrived - departure->at};
    // Bytes over seconds, without dividing by a time of zero.
    if (static_cast<double>(part.bytes) * fastest.seconds >= static_cast<double>(fastest.bytes) * part.seconds)
      fastest = part;
  }
  return 2 * fastest.bytes >= part.bytes ? fastest : Transfer{};
}

bool LinkModel::tells(const Transfer& transfer) noexcept {
  return transfer.bytes > 0 && std::isfinite(transfer.seconds) && transfer.seconds >= kShortest;
}

void LinkModel::record(const Transfer& transfer) noexcept {
  if (!tells(transfer)) return;
  const double speed = static_cast<double>(transfer.bytes) / transfer.seconds;
  if (!speed_) speed_ = speed;
  const double believed = std::min(speed, kFasterAtOnce * *speed_);
  *speed_ += (speed > *speed_ ? kFaster : kSlower) * (believed - *speed_);
}

void SharedLink::closed(std::size_t senders) {
  if (sent_.size() == senders_) record(sent_);
  sent_.clear();
  senders_ = senders;
}

void SharedLink::record(std::span<const Sender> senders) noexcept {
  double fastest = 0;
  for (const Sender& sender : senders) fastest = std::max(fastest, sender.speed());
  bool beside = false, fair = true;
  double begin = std::numeric_limits<double>::infinity(), end = 0;  // of those that are held up
  for (const Sender& sender : senders) {
    if (!beside_others(sender, senders)) continue;
    beside = true;
    if (sender.speed() >= kHeldUp * sender.before) continue;
    fair = fair && sender.speed() >= kFair * fastest;
    begin = std::min(begin, sender.begin);
    end = std::max(end, sender.end);
  }
  double most = fastest;
  if (begin < end && fair) {
    most = carried(senders, begin, end);
    most_ = held_up_ == 0 ? most : std::max(most_, most);
    if (++held_up_ >= kBelieved) speed_ = most_;
  } else if (beside) {
    held_up_ = 0;
  }
  if (speed_) speed_ = std::max(*speed_, most);
}

void SharedLink::fade(std::size_t waiting) noexcept {
  if (speed_) *speed_ *= std::pow(kFade, -1 / static_cast<double>(waiting));
}

}  // namespace motley::plan
