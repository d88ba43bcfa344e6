#pragma once
// What one who fetches has asked for and was not sent yet: what somebody waits for comes first. Pure.

#include <deque>
#include <optional>

#include "blocks/hash.h"
#include "motley/result.h"
#include "wire/messages.h"

namespace motley::blocks {

struct Wanted {
  std::uint64_t offer = 0;  // its manifest's name; 0: what `hash` is of
  Hash hash{};
  bool operator==(const Wanted&) const = default;
};

class Serving {
 public:
  /// Errors: protocol, where it is neither an offer nor a hash, or more than wire::kWantsMax are open.
  Status ask(const wire::Want& want);
  /// What is to be answered next; it is open no longer.
  std::optional<Wanted> next() { return take(waited_for_.empty() ? open_ : waited_for_); }
  /// Likewise of what somebody waits for.
  std::optional<Wanted> next_waited_for() { return take(waited_for_); }
  [[nodiscard]] std::size_t open() const noexcept { return open_.size() + waited_for_.size(); }
  [[nodiscard]] bool waited_for() const noexcept { return !waited_for_.empty(); }

 private:
  static std::optional<Wanted> take(std::deque<Wanted>& from);

  std::deque<Wanted> open_, waited_for_;
};

}  // namespace motley::blocks
