#include <windows.h>

#include <io.h>

#include "standard_streams.h"

namespace motley::cli {
namespace {

HANDLE handle_of(int descriptor) { return reinterpret_cast<HANDLE>(::_get_osfhandle(descriptor)); }

}  // namespace

// Of two pipes nobody knows; then one thread more writes than is needed.
bool same_stream(int one, int other) {
  BY_HANDLE_FILE_INFORMATION a{}, b{};
  return ::GetFileInformationByHandle(handle_of(one), &a) != 0 &&
         ::GetFileInformationByHandle(handle_of(other), &b) != 0 && a.dwVolumeSerialNumber == b.dwVolumeSerialNumber &&
         a.nFileIndexHigh == b.nFileIndexHigh && a.nFileIndexLow == b.nFileIndexLow;
}

// A console that takes the same control sequences as other terminals (Windows 10 and later), in UTF-8.
bool is_terminal(int descriptor) {
  const HANDLE console = handle_of(descriptor);
  DWORD mode = 0;
  return ::GetConsoleMode(console, &mode) != 0 &&
         ::SetConsoleMode(console, mode | ENABLE_PROCESSED_OUTPUT | ENABLE_VIRTUAL_TERMINAL_PROCESSING) != 0 &&
         ::SetConsoleOutputCP(CP_UTF8) != 0;
}

}  // namespace motley::cli
