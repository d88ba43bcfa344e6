// Control messages: what is accepted is written back in one form, and that form is read as itself.

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/assert.h"
#include "wire/messages.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace motley::wire;
  const auto message = decode(std::as_bytes(std::span(data, size)));
  if (!message.ok()) {
    MOTLEY_ASSERT(message.error().code == motley::ErrorCode::protocol);
    MOTLEY_ASSERT(!message.error().message.empty() && !message.error().hint.empty());
    return 0;
  }
  MOTLEY_ASSERT(!name_of(*message).empty());
  const motley::SharedBytes once = encode(*message);
  const auto again = decode(once.bytes());
  MOTLEY_ASSERT(again.ok());
  MOTLEY_ASSERT(std::ranges::equal(encode(*again).bytes(), once.bytes()));
  return 0;
}
