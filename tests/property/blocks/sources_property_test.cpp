// Whoever is asked, brings, hurries or goes: a block is open at one machine at most, and none is lost.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "blocks/sources.h"

namespace motley::blocks {
namespace {

Hash block_numbered(std::uint8_t number) {
  Hash hash{};
  hash[3] = number;
  return hash;
}

RC_GTEST_PROP(SourcesProperty, EachBlockIsOpenOnceUntilItComes, ()) {
  Sources sources;
  sources.add(0);
  std::set<std::uint8_t> open;
  Time now{};
  const auto moves = *rc::gen::container<std::vector<std::uint32_t>>(rc::gen::arbitrary<std::uint32_t>());
  for (const std::uint32_t move : moves) {
    now += std::chrono::milliseconds(move >> 24);
    const auto number = static_cast<std::uint8_t>(move >> 8);
    const Hash hash = block_numbered(number);
    const Sources::Id id = (move >> 16) % kSourcesMax;
    const std::optional<Sources::Id> asked = sources.asked(hash);
    RC_ASSERT(asked.has_value() == open.contains(number));
    if (move % 4 == 0 && !asked) {
      sources.ask(sources.choose(std::size_t{1} + number, number % 2 == 1, now), {hash, std::size_t{1} + number, false},
                  now);
      open.insert(number);
    } else if (move % 4 == 1) {
      RC_ASSERT(sources.take(id, hash, now) == (asked == id));
      if (asked == id) open.erase(number);
    } else if (move % 4 == 2) {
      sources.add(id);
      sources.hurry(hash);
    } else if (move % 4 == 3 && id != 0) {
      for (const Sources::Open& left : sources.drop(id)) {
        RC_ASSERT(open.contains(left.hash[3]) && !sources.asked(left.hash));
        sources.ask(sources.choose(left.bytes, left.waited_for, now), left, now);
      }
    }
    RC_ASSERT(sources.open() == open.size());
  }
}

}  // namespace
}  // namespace motley::blocks
