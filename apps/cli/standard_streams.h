#pragma once
// What the program was given to read from and to write to. Any thread.

namespace motley::cli {

inline constexpr int kIn = 0, kOut = 1, kErr = 2;

/// Whether both lead to the same file or pipe.
bool same_stream(int one, int other);
/// Whether people look at it, and lines can be drawn anew.
bool is_terminal(int descriptor);

}  // namespace motley::cli
