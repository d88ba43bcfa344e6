#include "blocks/missing.h"

#include <utility>

namespace motley::blocks {

Missing::Missing(const Manifest& manifest, const std::vector<bool>& here) {
  std::size_t number = 0;
  for (const Listed& file : manifest.files) {
    for (std::size_t block = 0; block < file.count(); ++block, ++number) {
      if (here[number]) continue;
      const Hash hash = file.hash(block);
      Content& content = contents_[hash];
      if (content.blocks.empty()) order_.push_back(hash);
      content.bytes = file.bytes(block);
      content.blocks.push_back(number);
      bytes_ += content.bytes;
    }
  }
}

std::optional<Missing::Next> Missing::next(std::size_t window) {
  while (open_ < window && at_ < order_.size()) {
    const auto found = contents_.find(order_[at_++]);
    if (found == contents_.end()) continue;
    found->second.open = true;
    ++open_;
    return Next{found->first, found->second.bytes};
  }
  return std::nullopt;
}

std::vector<std::size_t> Missing::take(const Hash& hash) {
  const auto found = contents_.find(hash);
  if (found == contents_.end()) return {};
  if (found->second.open) --open_;
  std::vector<std::size_t> blocks = std::move(found->second.blocks);
  contents_.erase(found);
  return blocks;
}

}  // namespace motley::blocks
