#pragma once
// What Windows refused, in the numbers of errno: they are the same on every system, and so are their texts. Any thread.

namespace motley {

/// Of `code`, as GetLastError() has it: ENOENT, EACCES, EBUSY (somebody else has it open), EEXIST, ENOSPC, …, else EIO.
[[nodiscard]] int errno_of_windows(unsigned long code) noexcept;

}  // namespace motley
