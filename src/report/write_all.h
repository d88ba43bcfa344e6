#pragma once
#include <string_view>

namespace motley::report {

/// Writes all of it; gives up silently when nobody reads any more.
void write_all(int descriptor, std::string_view text) noexcept;

}  // namespace motley::report
