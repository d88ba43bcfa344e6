#include "machine/confinement.h"

#ifdef __linux__
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <set>
#include <string>
#include <system_error>
#endif

namespace motley::machine {

#ifndef __linux__

bool give_up_privileges() noexcept { return false; }
bool confine_files(const Confinement&) { return false; }

#else

namespace {

namespace fs = std::filesystem;

// Landlock, as the kernel's documentation has it: headers of older systems lack it, and it may be missing from a
// kernel.
constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;
constexpr unsigned kAskVersion = 1, kBeneath = 1;
constexpr std::uint64_t kWriteFile = 1U << 1, kReadFile = 1U << 2, kReadDirectory = 1U << 3;
constexpr std::uint64_t kMakeAndRemove = 0x1FF0;  // bits 4 to 12
constexpr std::uint64_t kMoveBetween = 1U << 13, kTruncate = 1U << 14;

struct RulesetAttributes {
  std::uint64_t handled;
};
struct [[gnu::packed]] BeneathAttributes {
  std::uint64_t allowed;
  std::int32_t parent;
};

class Ruleset {
 public:
  /// Of a kernel with this version of Landlock.
  explicit Ruleset(long version) : handled_(kWriteFile | kReadFile | kReadDirectory | kMakeAndRemove) {
    if (version >= 2) handled_ |= kMoveBetween;
    if (version >= 3) handled_ |= kTruncate;
    const RulesetAttributes attributes{handled_};
    ruleset_ = static_cast<int>(syscall(kCreateRuleset, &attributes, sizeof attributes, 0U));
  }
  Ruleset(const Ruleset&) = delete;
  Ruleset& operator=(const Ruleset&) = delete;
  ~Ruleset() {
    if (ruleset_ >= 0) close(ruleset_);
  }

  void allow(const fs::path& path, bool write) const {
    const int place = open(path.c_str(), O_PATH | O_CLOEXEC);
    if (place < 0) return;  // what is not there needs no permission
    struct stat about{};
    std::uint64_t rights = write ? handled_ : kReadFile | kReadDirectory;
    if (fstat(place, &about) == 0 && !S_ISDIR(about.st_mode)) rights &= kWriteFile | kReadFile | kTruncate;
    const BeneathAttributes attributes{rights & handled_, place};
    syscall(kAddRule, ruleset_, kBeneath, &attributes, 0U);
    close(place);
  }
  [[nodiscard]] bool enforce() const { return ruleset_ >= 0 && syscall(kRestrictSelf, ruleset_, 0U) == 0; }

 private:
  std::uint64_t handled_;
  int ruleset_ = -1;
};

fs::path resolved(const fs::path& path) {
  std::error_code failed;
  fs::path found = fs::weakly_canonical(path, failed);
  return failed ? path : found;
}

bool contains(const fs::path& directory, const fs::path& path) {
  return std::mismatch(directory.begin(), directory.end(), path.begin(), path.end()).first == directory.end();
}

// Directories of the program and its libraries, some of which are loaded only when they are used.
std::set<fs::path> mapped_directories() {
  std::set<fs::path> found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)  // 7f00-7f10 r-xp 00000000 08:01 123   /usr/lib/libx.so
    if (const std::size_t at = line.find(" /"); at != std::string::npos && line.find(" r-xp ") < at)
      found.insert(fs::path(line.substr(at + 1)).parent_path());
  return found;
}

// Everything but `home`: what lies beside the directories that lead to it.
void allow_around(const Ruleset& rules, const fs::path& home) {
  fs::path towards = home.root_path();
  for (const fs::path& part : home.relative_path()) {
    std::error_code ignored;
    for (const fs::directory_entry& entry : fs::directory_iterator(towards, ignored))
      if (!contains(entry.path(), home)) rules.allow(entry.path(), false);
    towards /= part;
  }
}

}  // namespace

bool give_up_privileges() noexcept { return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0; }

bool confine_files(const Confinement& allowed) {
  const long version = syscall(kCreateRuleset, nullptr, std::size_t{0}, kAskVersion);
  if (version < 1 || !give_up_privileges()) return false;
  const Ruleset rules(version);
  const fs::path home = allowed.home.empty() ? fs::path() : resolved(allowed.home);
  if (home.relative_path().empty()) {
    rules.allow("/", false);
  } else {
    allow_around(rules, home);
    for (const fs::path& directory : mapped_directories()) rules.allow(directory, false);
  }
  for (const fs::path& path : allowed.writable) rules.allow(path, true);
  for (const char* of_system : {"/dev", "/proc"}) rules.allow(of_system, true);
  return rules.enforce();
}

#endif

}  // namespace motley::machine
