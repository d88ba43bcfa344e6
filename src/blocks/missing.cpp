#include "blocks/missing.h"

#include <algorithm>

namespace motley::blocks {

Missing::Missing(const Manifest& manifest, const std::vector<bool>& here) {
  std::size_t number = 0;
  for (const Listed& file : manifest.files) {
    for (std::size_t block = 0; block < file.count(); ++block, ++number) {
      if (here[number]) continue;
      const Hash hash = file.hash(block);
      Content& content = contents_[hash];
      content.bytes = file.bytes(block);
      content.blocks.push_back(number);
      bytes_ += content.bytes;
      order_.emplace_back(number, hash);
    }
  }
}

void Missing::wish(std::size_t block) { wishes_.push_back(block); }

std::optional<Missing::Next> Missing::next(std::size_t window) {
  if (waited_for_ < kWishesOpenMax)
    if (std::optional<Next> found = wished()) return found;
  return following(window);
}

std::optional<Missing::Next> Missing::wished() {
  while (!wishes_.empty()) {
    const bool few = wishes_.size() <= kWishesMax;
    const std::size_t block = wishes_.front();
    wishes_.pop_front();
    const auto place = std::ranges::lower_bound(order_, block, {}, &std::pair<std::size_t, Hash>::first);
    if (place == order_.end() || place->first != block) continue;
    const auto found = contents_.find(place->second);
    if (found == contents_.end() || found->second.waited_for) continue;
    Content& content = found->second;
    if (content.open) --open_;
    content.open = false;
    content.waited_for = true;
    ++waited_for_;
    at_ = static_cast<std::size_t>(place - order_.begin()) + 1;
    return Next{found->first, content.bytes, few};
  }
  return std::nullopt;
}

std::optional<Missing::Next> Missing::following(std::size_t window) {
  if (open_ >= window || open_ + waited_for_ == contents_.size()) return std::nullopt;
  for (std::size_t looked = 0; looked < order_.size(); ++looked, ++at_) {
    const auto found = contents_.find(order_[at_ % order_.size()].second);
    if (found == contents_.end() || found->second.open || found->second.waited_for) continue;
    found->second.open = true;
    ++open_;
    return Next{found->first, found->second.bytes, false};
  }
  return std::nullopt;
}

std::optional<std::size_t> Missing::find(const Hash& hash) const {
  const auto found = contents_.find(hash);
  return found == contents_.end() ? std::nullopt : std::optional(found->second.blocks.front());
}

std::vector<std::size_t> Missing::take(const Hash& hash) {
  const auto found = contents_.find(hash);
  if (found == contents_.end()) return {};
  if (found->second.open) --open_;
  if (found->second.waited_for) --waited_for_;
  std::vector<std::size_t> blocks = std::move(found->second.blocks);
  contents_.erase(found);
  return blocks;
}

}  // namespace motley::blocks
