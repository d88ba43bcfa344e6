#pragma once
// Which blocks of a set have not come, and which is asked for next. Pure.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "blocks/hash.h"
#include "blocks/manifest.h"

namespace motley::blocks {

class Missing {
 public:
  struct Next {
    Hash hash{};
    std::size_t bytes = 0;
  };

  /// `here`: by the number of a block in the set.
  Missing(const Manifest& manifest, const std::vector<bool>& here);
  [[nodiscard]] bool empty() const noexcept { return contents_.empty(); }
  /// Of the blocks that were not here at first: content that is there more than once counts so often.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  /// It is open from then on, until take(). `window`: so many are open at most.
  std::optional<Next> next(std::size_t window);
  /// The blocks that have this content; none, if it came before.
  std::vector<std::size_t> take(const Hash& hash);

 private:
  struct Content {
    std::size_t bytes = 0;
    std::vector<std::size_t> blocks{};
    bool open = false;
  };

  std::map<Hash, Content> contents_;
  std::vector<Hash> order_;  // of their first blocks
  std::size_t at_ = 0;       // in order_
  std::size_t open_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace motley::blocks
