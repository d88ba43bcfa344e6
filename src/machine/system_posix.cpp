#include <dlfcn.h>
#include <sys/utsname.h>

#include <fstream>

#include "machine/system.h"

#ifdef __APPLE__
#include <sys/sysctl.h>
#endif

namespace motley::machine {
namespace {

utsname told() {
  utsname about{};
  uname(&about);
  return about;
}

#ifdef __APPLE__
std::string asked(const char* name) {
  char text[64] = {};
  std::size_t size = sizeof text - 1;
  return sysctlbyname(name, text, &size, nullptr, 0) == 0 ? text : "";
}
#else
// PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"
std::string distribution(const std::filesystem::path& root) {
  std::ifstream file(root / "etc/os-release");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("PRETTY_NAME=")) continue;
    std::string name = line.substr(line.find('=') + 1);
    std::erase(name, '"');
    return name;
  }
  return {};
}
#endif

}  // namespace

#ifdef __APPLE__
System this_system(const std::filesystem::path& /*root*/) {
  return {"macOS " + asked("kern.osproductversion"), asked("kern.osversion")};
}
#else
System this_system(const std::filesystem::path& root) {
  const utsname about = told();
  const std::string name = distribution(root);
  return {name.empty() ? about.sysname : name, std::string(about.sysname) + " " + about.release};
}
#endif

std::string architecture() { return told().machine; }

int wsl_version(const std::filesystem::path& root) {
  std::string release;
  std::ifstream file(root / "proc/sys/kernel/osrelease");
  std::getline(file, release);
  // "4.4.0-19041-Microsoft"; "5.15.153.1-microsoft-standard-WSL2"
  if (release.find("icrosoft") == std::string::npos) return 0;
  return release.find("-Microsoft") != std::string::npos ? 1 : 2;
}

// By the driver's own library, which WSL has as well: there is no file of it there.
std::string nvidia_driver() {
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  if (library == nullptr) return {};
  const auto begin = reinterpret_cast<int (*)()>(dlsym(library, "nvmlInit_v2"));
  const auto version = reinterpret_cast<int (*)(char*, unsigned)>(dlsym(library, "nvmlSystemGetDriverVersion"));
  const auto end = reinterpret_cast<int (*)()>(dlsym(library, "nvmlShutdown"));
  char text[80] = {};
  if (begin != nullptr && version != nullptr && end != nullptr && begin() == 0) {
    if (version(text, sizeof text - 1) != 0) text[0] = 0;
    end();
  }
  dlclose(library);
  return text;
}

}  // namespace motley::machine
