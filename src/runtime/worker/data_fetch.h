#pragma once
// The head's data, where data.uri names files of its own: fetched by blocks whose hashes are checked, and kept. They
// may be read while they come. Blocks its thread; stop() from any.

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "blocks/missing.h"
#include "data/source/source.h"
#include "fleet/token.h"
#include "motley/result.h"
#include "runtime/worker/arrivals.h"
#include "runtime/worker/block_fetch.h"
#include "runtime/worker/kept_set.h"
#include "runtime/worker/origin.h"

namespace motley::runtime {

class DataFetch {
 public:
  /// What people hear; each may be empty.
  struct Told {
    std::function<void(std::uint64_t done, std::uint64_t total)> progress{};  // bytes
    std::function<void(const std::string& text)> note{};
  };

  /// `home`: where this user's machine keeps data.
  DataFetch(fleet::JoinToken token, const std::string& name, transport::Identity identity, std::filesystem::path home,
            Told told)
      : link_(std::make_shared<BlockFetch>(std::move(token), name, std::move(identity))),
        home_(std::move(home)),
        told_(std::move(told)) {}

  /// The head's list, and which of its blocks are here. Connects again for as long as it takes, and waits for another
  /// process of this machine that fetches the same. Errors: refused, where the head offers none, or refuses; disk_full,
  /// io; network, where the run is over; interrupted.
  Status begin();
  /// Blocks may come from the files' own addresses, too, of which there is one for each file of the set. REQUIRES
  /// begin(). Errors: of `open`.
  Status use_origin(const std::vector<std::string>& addresses, const std::vector<std::string>& allowed,
                    const OpenOrigin& open);
  /// Until all are here. Errors likewise, and who waits for a block hears of them. REQUIRES begin().
  Status fill();
  void stop() noexcept { stops_ = true; }
  /// Why begin() failed: the head offers no such files, or is of a version that never does.
  [[nodiscard]] bool offers_none() const noexcept { return none_; }

  // After begin().
  [[nodiscard]] const KeptSet& set() const { return *set_; }
  [[nodiscard]] bool was_whole() const noexcept { return !arrivals_; }
  /// The head names machines that have a set to others.
  [[nodiscard]] bool may_be_shared() const noexcept { return sources_; }
  /// Of the data that the files are; empty: the head does not say.
  [[nodiscard]] const std::string& train_fingerprint() const noexcept { return train_fingerprint_; }
  [[nodiscard]] const std::string& test_fingerprint() const noexcept { return test_fingerprint_; }
  /// A file of the set, which comes while it is read, or any other file. On any thread, beside fill().
  [[nodiscard]] Result<std::shared_ptr<const data::Source>> open(const std::string& path) const;

 private:
  using Event = BlockFetch::Event;
  /// Offered or Content, whichever the head was asked for last. Errors: protocol, for the other one.
  template <class Wanted>
  Result<Wanted> await();
  Status find();
  Status put_all();
  /// What happened within that time, but for breaks: then it connects again.
  Result<std::optional<Event>> look(Duration time);
  Status heed(const Event& event);
  void ask_origin(const blocks::Missing& missing);
  void note(const std::string& text) const {
    if (told_.note) told_.note(text);
  }
  Status wait(Duration time);

  std::shared_ptr<BlockFetch> link_;  // until all is here
  const std::filesystem::path home_;
  const Told told_;
  std::atomic<bool> stops_ = false;
  bool none_ = false, sources_ = false;
  Duration pause_{};
  Time heard_{};
  blocks::Hash hash_{};
  std::string train_fingerprint_, test_fingerprint_;
  std::optional<KeptSet> set_;
  std::vector<bool> here_;              // at the beginning
  std::shared_ptr<Arrivals> arrivals_;  // null: all was here at the beginning
  std::unique_ptr<Origin> origin_;
};

/// The addresses of a set's files, one for each, where the head's data.uri and data.test_uri are http:// or https://;
/// none where a file has none. `test_place`: as `place` below.
std::vector<std::string> addresses_of(const KeptSet& set, const std::string& train_uri, const std::string& test_uri,
                                      const std::string& test_place);

/// What `uri` of the head's configuration is on this machine, of the files below `place` of that set ("train", "test").
/// Errors: mismatch, where there are none.
Result<std::string> uri_here(const KeptSet& set, const std::string& uri, const std::string& place);

}  // namespace motley::runtime
