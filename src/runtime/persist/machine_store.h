#pragma once
// The machines that joined a run of this user's and said how they are woken. A small file that may be deleted at any
// time. One thread at a time; of two processes that write at once one loses what it learned.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "motley/result.h"
#include "transport/crypto.h"
#include "transport/wake.h"

namespace motley::runtime {

struct MetMachine {
  transport::Digest key{};  // what it showed; zero without TLS
  std::string name;         // that it gave itself: nobody vouches for it
  transport::HardwareAddress hardware_address{};
  std::string address;  // it was last seen at
  bool operator==(const MetMachine&) const = default;
};

class MachineStore {
 public:
  /// Machines that are remembered; of more the one that was met longest ago is forgotten.
  static constexpr std::size_t kMachinesMax = 128;

  /// An empty path keeps nothing.
  explicit MachineStore(std::filesystem::path file) : file_(std::move(file)) {}

  /// The one that was met last comes last. None where the file is missing, damaged, or not this user's alone.
  [[nodiscard]] std::vector<MetMachine> all() const;
  /// Replaces what is known of each by key and hardware address. Does not write where nothing is new.
  Status keep(const std::vector<MetMachine>& met) const;

 private:
  std::filesystem::path file_;
};

}  // namespace motley::runtime
