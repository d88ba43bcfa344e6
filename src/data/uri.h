#pragma once
// What a data.uri says by its own form. Functions without state; any thread.

#include <string>

namespace motley::data {

/// "text:PATH", or a path that ends in .txt.
[[nodiscard]] bool names_text(const std::string& uri);

/// The PATH of it.
[[nodiscard]] std::string text_path(const std::string& uri);

/// Both name one and the same file of text.
[[nodiscard]] bool same_text(const std::string& a, const std::string& b);

}  // namespace motley::data
