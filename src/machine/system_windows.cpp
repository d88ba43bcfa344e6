#include <windows.h>

#include <string>

#include "machine/system.h"

namespace motley::machine {

// GetVersionEx says what the program was made for; the kernel's own library what it is.
System this_system(const std::filesystem::path& /*root*/) {
  using Ask = LONG(WINAPI*)(OSVERSIONINFOW*);
  const HMODULE kernel = ::GetModuleHandleW(L"ntdll.dll");
  const auto ask = kernel == nullptr
                       ? nullptr
                       : reinterpret_cast<Ask>(reinterpret_cast<void*>(::GetProcAddress(kernel, "RtlGetVersion")));
  OSVERSIONINFOW about{};
  about.dwOSVersionInfoSize = sizeof about;
  if (ask == nullptr || ask(&about) != 0) return {"Windows", ""};
  return {"Windows " + std::to_string(about.dwMajorVersion) + "." + std::to_string(about.dwMinorVersion) + "." +
              std::to_string(about.dwBuildNumber),
          ""};
}

std::string architecture() {
  SYSTEM_INFO about{};
  ::GetNativeSystemInfo(&about);
  return about.wProcessorArchitecture == PROCESSOR_ARCHITECTURE_ARM64 ? "arm64" : "x86_64";
}

int wsl_version(const std::filesystem::path& /*root*/) { return 0; }

std::string nvidia_driver() {
  const HMODULE library = ::LoadLibraryExW(L"nvml.dll", nullptr, LOAD_LIBRARY_SEARCH_SYSTEM32);
  if (library == nullptr) return {};
  const auto find = [library](const char* name) { return reinterpret_cast<void*>(::GetProcAddress(library, name)); };
  const auto begin = reinterpret_cast<int (*)()>(find("nvmlInit_v2"));
  const auto version = reinterpret_cast<int (*)(char*, unsigned)>(find("nvmlSystemGetDriverVersion"));
  const auto end = reinterpret_cast<int (*)()>(find("nvmlShutdown"));
  char text[80] = {};
  if (begin != nullptr && version != nullptr && end != nullptr && begin() == 0) {
    if (version(text, sizeof text - 1) != 0) text[0] = 0;
    end();
  }
  ::FreeLibrary(library);
  return text;
}

}  // namespace motley::machine
