#include <windows.h>

#include <io.h>

#include <algorithm>
#include <cerrno>

#include "report/descriptor.h"

namespace motley::report {

const std::size_t kPieceBytes = 4096;

// Pipes and consoles do not say: whoever writes waits, on a thread of its own.
bool ready(int /*descriptor*/, int /*patience_ms*/) { return true; }

bool takes_at_once(int descriptor, std::size_t /*bytes*/) {
  return ::GetFileType(reinterpret_cast<HANDLE>(::_get_osfhandle(descriptor))) == FILE_TYPE_DISK;
}

std::optional<std::string_view> write_some(int descriptor, std::string_view text) {
  // Past the C library, which would write every line's end as two bytes.
  DWORD written = 0;
  const HANDLE handle = reinterpret_cast<HANDLE>(::_get_osfhandle(descriptor));
  if (::WriteFile(handle, text.data(), static_cast<DWORD>(text.size()), &written, nullptr) == 0) return std::nullopt;
  return text.substr(written);
}

std::optional<std::size_t> columns_of(int descriptor) {
  CONSOLE_SCREEN_BUFFER_INFO about{};
  if (::GetConsoleScreenBufferInfo(reinterpret_cast<HANDLE>(::_get_osfhandle(descriptor)), &about) == 0)
    return std::nullopt;
  return static_cast<std::size_t>(std::max(0, about.srWindow.Right - about.srWindow.Left + 1));
}

// What a console sends comes on a thread of its own.
struct SignalsBlocked::Before {};
SignalsBlocked::SignalsBlocked() = default;
SignalsBlocked::~SignalsBlocked() = default;

}  // namespace motley::report
