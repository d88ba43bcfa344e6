#include "runtime/worker/block_fetch.h"

#include <limits>

#include "runtime/mailbox.h"
#include "transport/crypto.h"
#include "wire/limits.h"

namespace motley::runtime {
namespace {

constexpr std::uint64_t kTriedMax = 1000;                                     // other machines, in one fetch
constexpr std::uint64_t kOrigin = std::numeric_limits<std::uint64_t>::max();  // its number

}  // namespace

BlockFetch::BlockFetch(fleet::JoinToken token, std::string name, transport::Identity identity)
    : token_(std::move(token)), name_(std::move(name)), identity_(std::move(identity)) {
  links_[BlockLink::kHead] = std::make_unique<BlockLink>(token_, name_, identity_, inbox_, BlockLink::kHead);
  sources_.add(BlockLink::kHead);
}

void BlockFetch::find_sources(const blocks::Hash& set) {
  set_ = set;
  links_.at(BlockLink::kHead)->send(wire::Keeps{{set.begin(), set.end()}, false});
}

bool BlockFetch::has_room() const { return sources_.open() < wire::kWantsMax; }

void BlockFetch::want(const blocks::Hash& hash, std::size_t bytes, bool waited_for) {
  const std::optional<std::uint64_t> asked = sources_.asked(hash);
  if (!asked) return ask_for({hash, bytes, waited_for});
  if (waited_for) sources_.hurry(hash);
  ask_of(*asked, {hash, bytes, waited_for});
}

void BlockFetch::ask_for(const blocks::Sources::Open& block) {
  const std::uint64_t from = sources_.choose(block.bytes, block.waited_for, now());
  sources_.ask(from, block, now());
  ask_of(from, block);
}

void BlockFetch::ask_of(std::uint64_t number, const blocks::Sources::Open& block) {
  if (number == kOrigin) return origin_asked_.push_back(block);
  links_.at(number)->want(block.hash, block.bytes, block.waited_for);
}

std::optional<BlockFetch::Event> BlockFetch::take() {
  for (;;) {
    std::optional<std::pair<std::uint64_t, BlockLink::Event>> next;
    {
      const std::lock_guard lock(inbox_->mutex);
      if (inbox_->events.empty()) break;
      next = std::move(inbox_->events.front());
      inbox_->events.pop_front();
    }
    if (std::optional<Event> event = sift(next->first, std::move(next->second))) return event;
  }
  for (const std::uint64_t stalled : sources_.stalled(now()))
    if (stalled != BlockLink::kHead) return drop(stalled, "brings nothing");
  return std::nullopt;
}

std::optional<BlockFetch::Event> BlockFetch::sift(std::uint64_t from, BlockLink::Event event) {
  if (from != BlockLink::kHead) return sift_other(from, std::move(event));
  if (const auto* source = std::get_if<wire::Source>(&event)) {
    open_source(*source);
    return std::nullopt;
  }
  if (const auto* content = std::get_if<BlockLink::Content>(&event))
    if (!sources_.take(from, content->hash, now())) return std::nullopt;
  if (std::holds_alternative<BlockLink::Connected>(event) && set_) find_sources(*set_);
  return std::visit(
      [](auto&& each) -> std::optional<Event> {
        if constexpr (std::is_constructible_v<Event, decltype(each)>) return std::forward<decltype(each)>(each);
        return std::nullopt;  // a guest: this one lets nobody in
      },
      std::move(event));
}

std::optional<BlockFetch::Event> BlockFetch::sift_other(std::uint64_t from, BlockLink::Event event) {
  const bool origin = from == kOrigin;
  if (origin ? origin_over_ : !links_.contains(from)) return std::nullopt;
  if (std::holds_alternative<BlockLink::Connected>(event)) sources_.add(from);
  if (const auto* broken = std::get_if<BlockLink::Broken>(&event))
    return drop(from, (origin ? "is not asked any more: " : "is gone: ") + broken->why);
  if (const auto* refused = std::get_if<BlockLink::Refused>(&event)) {
    if (refused->error.code != ErrorCode::refused) distrusted_.insert(keys_[from]);
    return drop(from, "is not asked any more: " + refused->error.message);
  }
  auto* content = std::get_if<BlockLink::Content>(&event);
  if (content == nullptr || !sources_.take(from, content->hash, now())) return std::nullopt;
  (origin ? from_origin_ : from_others_) += content->bytes.size();
  return std::move(*content);
}

void BlockFetch::open_source(const wire::Source& source) {
  const Result<fleet::JoinToken> token = token_for(source, token_);
  const bool right = token.ok() && set_ && links_.size() + (sources_.has(kOrigin) ? 1 : 0) < blocks::kSourcesMax &&
                     numbers_ < kTriedMax;
  const std::string key(source.spki.begin(), source.spki.end());
  if (!right || distrusted_.contains(key)) return;
  const std::uint64_t number = ++numbers_;
  keys_[number] = key;
  links_[number] = std::make_unique<BlockLink>(*token, name_, identity_, inbox_, number);
  links_[number]->dial();
}

BlockFetch::Event BlockFetch::drop(std::uint64_t number, const std::string& why) {
  const bool origin = number == kOrigin;
  if (origin) {
    origin_over_ = true;
    origin_asked_.clear();
  }
  links_.erase(number);
  keys_.erase(number);
  for (const blocks::Sources::Open& block : sources_.drop(number)) ask_for(block);
  return Dropped{(origin ? "the address of the files " : "another machine that has the files ") + why, origin};
}

void BlockFetch::origin_brings(const blocks::Hash& hash, std::vector<std::byte> content) {
  if (transport::sha256(content) != hash) return origin_ends("a block came with another content than on the head");
  tell_of_origin(BlockLink::Content{hash, std::move(content)});
}

void BlockFetch::tell_of_origin(BlockLink::Event event) {
  const std::lock_guard lock(inbox_->mutex);
  inbox_->events.emplace_back(kOrigin, std::move(event));
  inbox_->changed.notify_all();
}

}  // namespace motley::runtime
