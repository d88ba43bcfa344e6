#pragma once
// What this process may still do when it works for another machine: less, for good, for the calling thread and for all
// threads and programs that it starts from then on. Call it before there are other threads.

#include <filesystem>
#include <vector>

namespace motley::machine {

struct Confinement {
  std::vector<std::filesystem::path> writable{};  // directories below which files may be written, made and deleted
  std::filesystem::path home{};                   // of which nothing else may be read; empty: everything may be
};

/// No program that is started gains the rights of another user. False where the system cannot do that.
bool give_up_privileges() noexcept;

/// Files are opened only as said, beside those of the system: what lies outside of `home` may be read, libraries that
/// this process uses as well, and devices and /proc written. What is open stays open, and the network is not concerned.
/// False, and nothing is confined, where the system cannot do that (Linux can, with Landlock).
bool confine_files(const Confinement& allowed);

}  // namespace motley::machine
