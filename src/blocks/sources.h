#pragma once
// Of several machines that have the same blocks: which one is asked for the next, by what each has brought lately.
// Pure.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/time.h"
#include "blocks/hash.h"

namespace motley::blocks {

inline constexpr std::size_t kSourcesMax = 4;                        // at once, the head among them
inline constexpr Duration kStalledAfter = std::chrono::seconds(10);  // that it was asked and brought nothing

class Sources {
 public:
  using Id = std::uint64_t;
  struct Open {
    Hash hash{};
    std::size_t bytes = 0;
    bool waited_for = false;
  };

  void add(Id id) { sources_.try_emplace(id); }
  [[nodiscard]] bool has(Id id) const { return sources_.contains(id); }
  /// What it was asked for and has not brought.
  std::vector<Open> drop(Id id);
  /// Who would have brought it soonest, as far as can be told: what is waited for goes before all else. REQUIRES that
  /// there is one.
  [[nodiscard]] Id choose(std::size_t bytes, bool waited_for, Time now) const;
  /// REQUIRES that it was added, and that the block is open nowhere.
  void ask(Id id, const Open& block, Time now);
  /// Who was asked for it.
  [[nodiscard]] std::optional<Id> asked(const Hash& hash) const;
  /// The block is waited for by now.
  void hurry(const Hash& hash);
  /// False: it was not asked for that.
  bool take(Id id, const Hash& hash, Time now);
  /// Who was asked and has brought nothing for so long.
  [[nodiscard]] std::vector<Id> stalled(Time now) const;
  [[nodiscard]] std::size_t open() const noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return sources_.size(); }

 private:
  struct Source {
    std::map<Hash, Open> open{};
    double seconds = 0, bytes = 0;  // in which it was asked for something, and what it brought, of the last seconds
    Time since{};                   // where something is open: that it brought something, or was asked
    [[nodiscard]] double rate(Time now) const;  // bytes a second; 0: not known
  };
  std::map<Id, Source> sources_;
};

}  // namespace motley::blocks
