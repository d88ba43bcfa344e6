#pragma once
// What a board looks like in a terminal. Pure. Widths are in columns; every symbol used is one column wide.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/board.h"

namespace motley::report {

/// The lines that move: progress, loss, a line a worker, and what the run waits for.
std::vector<std::string> screen_of(const Board& board);

/// "━━━━━╸────": `fraction` in [0, 1] of `width` columns.
std::string progress_bar(double fraction, std::size_t width);
/// Eight heights, newest last; at most `width` values, the older ones averaged together. Empty for no values.
std::string sparkline(std::span<const double> values, std::size_t width);
/// "12 s", "3 min 05 s", "2 h 10 min".
std::string duration_text(double seconds);
/// "950", "12.3 k", "4.56 M".
std::string count_text(double value);
/// The first `columns` columns of a UTF-8 text that holds no control characters.
std::string fit(std::string_view text, std::size_t columns);

}  // namespace motley::report
