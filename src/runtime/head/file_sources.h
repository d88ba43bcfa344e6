#pragma once
// Who has a set of files whole and hands it on, who fetches it, and which of these the head brings together. Of the
// mailbox's thread.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "blocks/hash.h"

namespace motley::runtime {

class FileSources {
 public:
  using LinkId = std::uint64_t;
  using Key = std::array<std::uint8_t, 32>;      // hash of a machine's; zero without TLS
  static constexpr std::size_t kServersMax = 3;  // of one who fetches
  static constexpr std::size_t kGuestsMax = 4;   // of one who hands on

  struct Meeting {
    LinkId server = 0, guest = 0;
    std::uint64_t id = 0;
    std::array<std::uint8_t, 16> secret{};
  };

  /// What that machine says of a set: it has all of it, or would have it from others. Who is to be let in now, by whom.
  std::vector<Meeting> keeps(LinkId link, const Key& key, const blocks::Hash& set, bool whole);
  /// It fetches nothing.
  [[nodiscard]] bool serves(LinkId link) const;
  [[nodiscard]] std::size_t serving() const;
  [[nodiscard]] const Key& key(LinkId link) const { return machines_.at(link).key; }
  /// The meeting of that number, of who is to let the guest in.
  [[nodiscard]] std::optional<Meeting> meeting(LinkId server, std::uint64_t id) const;
  /// It is gone: the meetings that end by it.
  std::vector<Meeting> close(LinkId link);

 private:
  struct Machine {
    Key key{};
    std::vector<blocks::Hash> whole{};
    std::optional<blocks::Hash> fetches{};
  };
  [[nodiscard]] bool suit(LinkId server, LinkId guest) const;
  [[nodiscard]] std::size_t meetings_of(LinkId link) const;

  std::map<LinkId, Machine> machines_;
  std::vector<Meeting> meetings_;
};

}  // namespace motley::runtime
