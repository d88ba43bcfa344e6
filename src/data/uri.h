#pragma once
// What a data.uri says by its own form. Functions without state; any thread.

#include <string>
#include <vector>

namespace motley::data {

/// "text:PATH", or a path that ends in .txt.
[[nodiscard]] bool names_text(const std::string& uri);

/// The PATH of it.
[[nodiscard]] std::string text_path(const std::string& uri);

/// The files and directories of this machine that opening it may look at; none for data that are known by name or made
/// up.
[[nodiscard]] std::vector<std::string> paths_of(const std::string& uri);

/// Both name one and the same file of text.
[[nodiscard]] bool same_text(const std::string& a, const std::string& b);

}  // namespace motley::data
