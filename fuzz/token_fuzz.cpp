// Join tokens: a text that is accepted is the one text of its token, up to white space around it.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "fleet/token.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto token = motley::fleet::parse_token(text);
  if (!token.ok()) {
    MOTLEY_ASSERT(token.error().code == motley::ErrorCode::input);
    MOTLEY_ASSERT(!token.error().message.empty() && !token.error().hint.empty());
    return 0;
  }
  const std::string written = to_text(*token);
  MOTLEY_ASSERT(written.size() <= motley::fleet::JoinToken::kTextBytesMax);
  MOTLEY_ASSERT(text.find(written) != std::string::npos);
  MOTLEY_ASSERT(*motley::fleet::parse_token(written) == *token);
  return 0;
}
