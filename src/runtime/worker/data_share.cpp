#include "runtime/worker/data_share.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/thread_name.h"
#include "runtime/mailbox.h"

namespace motley::runtime {
namespace {

using namespace std::chrono_literals;

constexpr Duration kGlance = 100ms;         // for whether to stop
constexpr Duration kAwayFirst = 500ms;      // between two tries
constexpr Duration kAwayMost = 5s;          // likewise
constexpr std::uint64_t kLagMax = 16;       // of another device of this machine; what is older is of another run
constexpr double kStepsOver = 4;            // steps' time without one: none are made
constexpr double kStepsOverSecondsMin = 1;  // likewise, at least

}  // namespace

DataShare::DataShare(fleet::JoinToken token, std::string name, transport::Identity identity)
    : token_(std::move(token)), name_(std::move(name)), identity_(std::move(identity)) {}

Status DataShare::add(blocks::Catalogue::Offer offer) {
  const wire::Keeps set{{offer.hash.begin(), offer.hash.end()}, true};
  if (Status added = offers_->add(std::move(offer)); !added) return added;
  const std::lock_guard lock(mutex_);
  if (stops_) return {};
  sets_.push_back(set);
  if (link_) {
    link_->send(set);
    return {};
  }
  door_ = std::make_unique<BlockDoor>(offers_, token_, identity_);
  link_ = std::make_unique<BlockLink>(token_, name_, identity_);
  link_->dial();
  thread_ = std::thread([this] { loop(); });
  return {};
}

void DataShare::close() {
  stops_ = true;
  if (thread_.joinable()) thread_.join();
  const std::lock_guard lock(mutex_);
  link_.reset();
  door_.reset();
}

void DataShare::step(std::uint64_t version) {
  const std::lock_guard lock(mutex_);
  const bool older = version <= version_ && version_ - version < kLagMax;
  if (!door_ || older) return;
  const Time at = now();
  const bool follows = stepped_ != Time{} && version == version_ + 1;
  version_ = version;
  step_seconds_ = follows ? seconds(at - stepped_) : 0;
  stepped_ = at;
  door_->set_training(true);
  if (follows) door_->step(step_seconds_, 1);
}

void DataShare::look_at_steps() {
  const std::lock_guard lock(mutex_);
  const double over = std::max(kStepsOverSecondsMin, kStepsOver * step_seconds_);
  if (stepped_ == Time{} || seconds(now() - stepped_) < over) return;
  stepped_ = {};
  door_->set_training(false);
}

void DataShare::loop() {
  name_thread("motley-share");
  Duration pause{};
  Time again{};
  bool away = false;
  while (!stops_) {
    std::optional<BlockLink::Event> event;
    {
      std::unique_lock lock(link_->mutex());
      link_->changed().wait_for(lock, kGlance, [this] { return link_->has_event(); });
      event = link_->take();
    }
    look_at_steps();
    if (event && std::holds_alternative<BlockLink::Connected>(*event)) pause = {};
    if (event && std::holds_alternative<BlockLink::Broken>(*event)) {
      pause = std::clamp(2 * pause, kAwayFirst, kAwayMost);
      again = now() + pause;
      away = true;
    }
    if (event && !take(std::move(*event))) return;
    if (away && now() >= again) {
      away = false;
      link_->dial();
    }
  }
}

bool DataShare::take(BlockLink::Event event) {
  if (std::holds_alternative<BlockLink::Connected>(event)) {
    const std::lock_guard lock(mutex_);
    for (const wire::Keeps& set : sets_) link_->send(set);
  } else if (const auto* guest = std::get_if<wire::Guest>(&event)) {
    let_in(*guest);
  } else if (std::holds_alternative<BlockLink::Broken>(event)) {
    door_->dismiss_all();
  } else if (std::holds_alternative<BlockLink::Refused>(event)) {
    door_->dismiss_all();
    return false;
  }
  return true;
}

void DataShare::let_in(const wire::Guest& guest) {
  if (guest.secret.empty()) return door_->dismiss(guest.id);
  const Result<wire::Source> source = door_->admit(guest);
  if (source) link_->send(*source);
}

}  // namespace motley::runtime
