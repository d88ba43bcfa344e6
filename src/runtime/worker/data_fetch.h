#pragma once
// The head's data, where data.uri names files of its own: fetched by blocks whose hashes are checked, and kept. Blocks
// its thread; stop() from any.

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fleet/token.h"
#include "motley/result.h"
#include "runtime/worker/block_link.h"
#include "runtime/worker/kept_set.h"

namespace motley::runtime {

class DataFetch {
 public:
  using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;  // bytes

  /// `home`: where this user's machine keeps data. `progress` may be empty.
  DataFetch(fleet::JoinToken token, const std::string& name, transport::Identity identity, std::filesystem::path home,
            Progress progress)
      : link_(std::move(token), name, std::move(identity)), home_(std::move(home)), progress_(std::move(progress)) {}

  /// Until all files of the head's list are here. Connects again for as long as it takes, and waits for another process
  /// of this machine that fetches the same. Errors: refused, where the head offers none, or refuses; disk_full, io;
  /// network, where the run is over; interrupted.
  Result<KeptSet> run();
  void stop() noexcept { stops_ = true; }
  /// Why run() failed: the head offers no such files, or is of a version that never does.
  [[nodiscard]] bool offers_none() const noexcept { return none_; }

 private:
  using Event = BlockLink::Event;
  /// Offered or Content, whichever the head was asked for last. Errors: protocol, for the other one.
  template <class Wanted>
  Result<Wanted> await();
  Result<KeptSet> find();
  Status fill(KeptSet& set, const std::vector<bool>& here);
  /// What happened next, if that was within a while, but for breaks: then it connects again.
  Result<std::optional<Event>> look();
  Status heed(const Event& event);
  Status wait(Duration time);

  BlockLink link_;
  const std::filesystem::path home_;
  const Progress progress_;
  std::atomic<bool> stops_ = false;
  bool none_ = false;
  Duration pause_{};
  Time heard_{};
};

/// What `uri` of the head's configuration is on this machine, of the files below `place` of that set ("train", "test").
/// Errors: mismatch, where there are none.
Result<std::string> uri_here(const KeptSet& set, const std::string& uri, const std::string& place);

}  // namespace motley::runtime
