// Files from elsewhere: whatever frames come in whatever order, what is taken has the hash that was asked for, no more
// is held than was asked for, and what wants come stay within their limit.

#include <cstdint>
#include <vector>

#include "base/assert.h"
#include "base/xxh64.h"
#include "blocks/asking.h"
#include "blocks/serving.h"
#include "choices.h"
#include "wire/limits.h"

namespace {

using namespace motley;

blocks::Hash hash_of(std::span<const std::byte> bytes) {
  blocks::Hash hash{};
  for (std::size_t i = 0; i < hash.size(); i += 8)
    store_le(reinterpret_cast<std::byte*>(hash.data() + i), xxh64(bytes, i + 1));
  return hash;
}

std::vector<std::byte> content(std::size_t number) { return std::vector<std::byte>(1 + 37 * number, std::byte{7}); }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Choices choices({data, size});
  blocks::Asking asking(&hash_of);
  blocks::Serving serving;
  while (!choices.empty()) {
    const std::vector<std::byte> whole = content(choices.below(8));
    const blocks::Hash hash = hash_of(whole);
    switch (choices.below(6)) {
      case 0:
        if (asking.has_room()) asking.want(hash, 1 + choices.below(300));
        break;
      case 1:
        if (asking.has_room()) asking.want(hash, whole.size());
        break;
      case 2:
        MOTLEY_ASSERT(asking.restart().size() == asking.open());
        break;
      case 3: {
        const wire::Want want{choices.below(3), std::vector<std::uint8_t>(choices.below(40))};
        if (!serving.ask(want).ok()) MOTLEY_ASSERT(serving.open() <= wire::kWantsMax);
        break;
      }
      case 4:
        MOTLEY_ASSERT(serving.next().has_value() || serving.open() == 0);
        break;
      default: {
        wire::FrameHeader header;
        header.type = choices.byte() == 0 ? wire::FrameType::blob : wire::FrameType::block;
        header.subject = choices.byte() == 0 ? choices.number(blocks::prefix_of(hash)) : blocks::prefix_of(hash);
        header.total = static_cast<std::uint32_t>(choices.byte() == 0 ? choices.number(whole.size()) : whole.size());
        header.offset = static_cast<std::uint32_t>(choices.number(0));
        std::vector<std::byte> body(whole.begin() + static_cast<std::ptrdiff_t>(choices.below(whole.size())),
                                    whole.end());
        if (choices.byte() == 0 && !body.empty()) body[0] = std::byte{8};
        header.length = static_cast<std::uint32_t>(body.size());
        const std::size_t before = asking.open();
        const auto added = asking.add({header, SharedBytes::copy_of(body)});
        if (!added.ok()) {
          MOTLEY_ASSERT(!added.error().message.empty());
        } else if (added->whole) {
          MOTLEY_ASSERT(hash_of(added->content) == *added->whole && asking.open() + 1 == before);
        }
      }
    }
    MOTLEY_ASSERT(asking.open() <= wire::kWantsMax && serving.open() <= wire::kWantsMax);
  }
  return 0;
}
