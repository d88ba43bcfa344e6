#pragma once
// The head's data, where data.uri names files of its own: fetched by blocks whose hashes are checked, and kept. Blocks
// its thread; stop() from any.

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>

#include "fleet/token.h"
#include "motley/result.h"
#include "runtime/worker/block_fetch.h"
#include "runtime/worker/kept_set.h"

namespace motley::runtime {

class DataFetch {
 public:
  /// done(bytes, of): may be empty.
  using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;

  /// `home`: where this user's machine keeps data.
  DataFetch(fleet::JoinToken token, const std::string& name, transport::Identity identity, std::filesystem::path home,
            Progress progress)
      : link_(std::move(token), name, std::move(identity)), home_(std::move(home)), progress_(std::move(progress)) {}

  /// The set that the head offers, once all of it is here. Connects again for as long as it takes. Errors: refused,
  /// where the head offers none, or refuses; disk_full, io; network, where the run is over; interrupted.
  Result<KeptSet> run();
  void stop() noexcept { stops_ = true; }
  /// Why run() failed: the head offers no such files, or is of a version that never does.
  [[nodiscard]] bool offers_none() const noexcept { return none_; }
  /// The head names machines that have a set to others. After run().
  [[nodiscard]] bool may_be_shared() const noexcept { return sources_; }

 private:
  /// Offered or Content, whichever the head was asked for last. Errors: protocol, for the other one.
  template <class Wanted>
  Result<Wanted> await();
  Status fill(KeptSet& set);
  /// Blocks of one file, from that one on.
  Status fill_file(KeptSet& set, const blocks::Listed& file, std::size_t first);
  /// What happened next, but for breaks: then it connects again.
  Result<BlockFetch::Event> next();
  Status wait(Duration time);

  BlockFetch link_;
  const std::filesystem::path home_;
  const Progress progress_;
  std::atomic<bool> stops_ = false;
  bool none_ = false, sources_ = false;
  Duration pause_{};
  std::uint64_t done_ = 0;
};

/// What `uri` of the head's configuration is on this machine, of the files below `place` of that set ("train", "test").
/// Errors: mismatch, where there are none.
Result<std::string> uri_here(const KeptSet& set, const std::string& uri, const std::string& place);

}  // namespace motley::runtime
