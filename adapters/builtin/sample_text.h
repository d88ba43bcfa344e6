#pragma once
// Text from a trained gpt-mini, one byte after the other.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "motley/result.h"

namespace motley::builtin {

struct SampleRequest {
  std::string prompt;  // bytes; not empty
  std::uint64_t bytes = 500;
  double temperature = 0.8;  // 0: always the likeliest byte
  std::uint64_t top_k = 0;   // draw from so many likeliest bytes; 0: from all
  std::uint64_t seed = 1;
};

/// Fills the logits of the byte that follows a window.
using Logits = std::function<Status(std::string_view window, std::span<float> of_256_bytes)>;

/// Continues the prompt, each byte seeing the last `block` ones, and hands on one byte after the other until `on_byte`
/// returns false. Draws with numbers of our own and not with torch's: they are the same with every version of it.
Status sample_text(const SampleRequest& request, std::size_t block, const Logits& logits,
                   const std::function<bool(char)>& on_byte);

}  // namespace motley::builtin
