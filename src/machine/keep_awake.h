#pragma once
// The machine does not go to sleep for want of use while it works for a run.

#include <memory>
#include <string>

namespace motley::machine {

inline constexpr const char* kTrainsHere = "a model is being trained";
inline constexpr const char* kWorksHere = "this machine helps to train a model";

/// The directories in which the system looks for programs: PATH.
std::string program_path();

/// While this lives, and the process with it, the system is asked to stay awake, by its own tool: systemd-inhibit on
/// Linux, caffeinate on macOS. Nothing happens where the tool is missing or refuses. A lid that is closed, and whoever
/// sends the machine to sleep as its administrator, have their way. Owned by one thread at a time.
class KeepAwake {
 public:
  /// `why`: for people who ask the system what keeps it awake. `path`: where the tool is looked for, as PATH.
  explicit KeepAwake(const std::string& why, const std::string& path = program_path());
  ~KeepAwake();
  KeepAwake(const KeepAwake&) = delete;
  KeepAwake& operator=(const KeepAwake&) = delete;

 private:
  class Hold;
  std::unique_ptr<Hold> hold_;  // null: the system was not asked
};

}  // namespace motley::machine
