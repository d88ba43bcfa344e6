#pragma once
// Which system this is, and of which version, for whoever reports a fault. Nothing here names the user, the machine or
// a place on its disks. Thread-safe.

#include <filesystem>
#include <string>

namespace motley::machine {

/// "macOS 26.4", build "25E246"; "Debian GNU/Linux 12 (bookworm)", build: the kernel's release; "Windows 10.0.26100".
/// Empty: the system does not tell.
struct System {
  std::string name{}, build{};
};
/// `root`: of the file system; tests have one of their own.
System this_system(const std::filesystem::path& root = "/");
/// "x86_64", "arm64".
std::string architecture();

/// The Windows Subsystem for Linux: 1 or 2 as it is; 0: this is none.
int wsl_version(const std::filesystem::path& root = "/");

/// Of the NVIDIA driver, "580.65.06"; empty where there is none.
std::string nvidia_driver();

}  // namespace motley::machine
