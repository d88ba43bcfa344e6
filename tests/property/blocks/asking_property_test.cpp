#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>
#include <vector>

#include "base/xxh64.h"
#include "blocks/asking.h"
#include "blocks/serving.h"
#include "wire/limits.h"

namespace motley::blocks {
namespace {

Hash hash_of(std::span<const std::byte> bytes) {
  Hash hash{};
  for (std::size_t i = 0; i < hash.size(); i += 8)
    store_le(reinterpret_cast<std::byte*>(hash.data() + i), xxh64(bytes, i + 1));
  return hash;
}

// One side asks for some of the contents, the other answers in pieces; pieces get lost with their connection, and
// contents are damaged now and then. What is taken is right, and in the end all of it came.
RC_GTEST_PROP(Fetch, OnlyRightContentComesAndAllOfIt, ()) {
  std::map<Hash, std::vector<std::byte>> there;
  const auto count = *rc::gen::inRange<std::size_t>(1, 12);
  while (there.size() < count) {
    std::vector<std::byte> content(*rc::gen::inRange<std::size_t>(1, 300));
    for (std::byte& byte : content) byte = static_cast<std::byte>(*rc::gen::arbitrary<std::uint8_t>());
    there[hash_of(content)] = content;
  }
  Asking asking(&hash_of);
  Serving serving;
  const auto ask = [&](const wire::Want& want) { RC_ASSERT(serving.ask(want).ok()); };
  for (const auto& [hash, content] : there) {
    const auto want = asking.want(hash, content.size());
    RC_ASSERT(want.has_value());
    ask(*want);
  }
  std::map<Hash, int> damages;
  std::set<Hash> came;
  for (int breaks = 3; asking.open() > 0;) {
    const std::optional<Wanted> wanted = serving.next();
    RC_ASSERT(wanted.has_value());
    std::vector<std::byte> content = there.at(wanted->hash);
    if (*rc::gen::inRange(0, 4) == 0 && damages[wanted->hash] + 1 < kAttemptsMax) {
      ++damages[wanted->hash];
      content[*rc::gen::inRange<std::size_t>(0, content.size())] ^= std::byte{1};
    }
    for (std::size_t offset = 0; offset < content.size();) {
      if (breaks > 0 && *rc::gen::inRange(0, 10) == 0) {
        --breaks;
        serving = {};
        for (const wire::Want& want : asking.restart()) ask(want);
        break;
      }
      const auto size = *rc::gen::inRange<std::size_t>(1, content.size() - offset + 1);
      wire::FrameHeader header;
      header.type = wire::FrameType::block;
      header.subject = prefix_of(wanted->hash);
      header.offset = static_cast<std::uint32_t>(offset);
      header.total = static_cast<std::uint32_t>(content.size());
      const auto piece = std::span<const std::byte>(content).subspan(offset, size);
      Result<Asking::Added> added = asking.add(wire::seal(header, SharedBytes::copy_of(piece)));
      RC_ASSERT(added.ok());
      if (added->again) ask(*added->again);
      if (added->whole) {
        RC_ASSERT(added->content == there.at(*added->whole));
        came.insert(*added->whole);
      }
      offset += size;
    }
  }
  RC_ASSERT(came.size() == there.size());
}

}  // namespace
}  // namespace motley::blocks
