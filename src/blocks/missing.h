#pragma once
// Which blocks of a set have not come, and which is asked for next: one that somebody waits for, else the one behind
// the last of these. Pure.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "blocks/hash.h"
#include "blocks/manifest.h"

namespace motley::blocks {

inline constexpr std::size_t kWishesOpenMax = 32;  // of what somebody waits for, so many are asked for at once
inline constexpr std::size_t kWishesMax = 256;     // more: somebody waits for a whole set, and not for its next samples

class Missing {
 public:
  struct Next {
    Hash hash{};
    std::size_t bytes = 0;
    bool waited_for = false;
  };

  /// `here`: by the number of a block in the set.
  Missing(const Manifest& manifest, const std::vector<bool>& here);
  [[nodiscard]] bool empty() const noexcept { return contents_.empty(); }
  /// Of the blocks that were not here at first: content that is there more than once counts so often.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  /// Somebody waits for that block.
  void wish(std::size_t block);
  /// It is open from then on, until take(); what is open already comes where it is waited for by now. `window`: of what
  /// nobody waits for so many are open at most.
  std::optional<Next> next(std::size_t window);
  /// One of the blocks that have this content; nothing, if it came before.
  [[nodiscard]] std::optional<std::size_t> find(const Hash& hash) const;
  /// The blocks that have this content; none, if it came before.
  std::vector<std::size_t> take(const Hash& hash);

 private:
  struct Content {
    std::size_t bytes = 0;
    std::vector<std::size_t> blocks{};
    bool open = false, waited_for = false;
  };
  std::optional<Next> wished();
  std::optional<Next> following(std::size_t window);

  std::map<Hash, Content> contents_;
  std::vector<std::pair<std::size_t, Hash>> order_;  // by block
  std::deque<std::size_t> wishes_;
  std::size_t at_ = 0;  // in order_
  std::size_t open_ = 0, waited_for_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace motley::blocks
