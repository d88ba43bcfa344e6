// The share of who wants to pair, and what is bound to it: nobody who does not know the code comes to the head's
// numbers.

#include <cstdint>
#include <span>
#include <string>

#include "base/assert.h"
#include "transport/spake2.h"

using motley::transport::Spake2;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Spake2::Scalar kCode = Spake2::scalar_of("123456");
  static const Spake2 kJoiner(Spake2::Role::a, kCode), kHead(Spake2::Role::b, kCode);
  const std::span<const std::uint8_t> share(data, size < 65 ? size : 65);
  const Spake2::Context context{std::string(data + share.size(), data + size), "desktop", ""};
  const auto of_head = kHead.finish(share, context), of_joiner = kJoiner.finish(share, context);
  MOTLEY_ASSERT(of_head.has_value() == of_joiner.has_value());  // a point for one is one for the other
  if (!of_head) return 0;
  MOTLEY_ASSERT(share.size() == 65 && share.front() == 4);
  MOTLEY_ASSERT(of_head->confirm_a != of_head->confirm_b && of_head->confirm_a != of_joiner->confirm_a);
  // Without knowing what the point is of, the keys are none that the two without it have.
  const auto good = kHead.finish(kJoiner.share(), context);
  MOTLEY_ASSERT(good && good->confirm_a == kJoiner.finish(kHead.share(), context)->confirm_a);
  MOTLEY_ASSERT(good->confirm_a != of_head->confirm_a);
  return 0;
}
