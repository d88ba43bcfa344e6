#pragma once
// What one who fetches has asked for and was not sent yet. Pure.

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
  std::optional<Wanted> next();
  [[nodiscard]] std::size_t open() const noexcept { return open_.size(); }

 private:
  std::deque<Wanted> open_;
};

}  // namespace motley::blocks
