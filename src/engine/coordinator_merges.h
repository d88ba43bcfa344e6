#pragma once
// Contributions that come as one sum: each worker of a chain adds its own to what the one behind it sends, in order of
// positions from the first one of the pass on, and the last sends that to the coordinator. What each declares comes
// from itself. Where anything is wrong with it, each is told to send its own. One thread at a time.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "cluster/coordinator_machine.h"
#include "engine/coordinator.h"
#include "engine/coordinator_pace.h"
#include "engine/coordinator_sessions.h"
#include "engine/coordinator_uploads.h"
#include "motley/layout.h"
#include "wire/frame.h"
#include "wire/messages.h"

namespace motley::engine {

class Merges {
 public:
  /// After something was wrong there are none for so many steps, and each time for twice as many; for half as many
  /// again where it went well for so long.
  static constexpr std::uint64_t kRestSteps = 4, kGoodSteps = 50;
  /// The number under which sums are kept until they are whole; no lease has it.
  static constexpr modes::LeaseId kSum = 0;

  /// REQUIRES all outlive this.
  Merges(const CoordinatorOptions& options, const cluster::CoordinatorMachine& machine, const Layout& layout,
         Sessions& sessions, Uploads& uploads, MeasuredPace& pace);

  /// Between two steps: who is to get which positions. `on`: contributions are to be summed.
  void choose_order(bool on);
  /// When all that happened is dealt with: what follows from it here. To be called again after what it returns.
  [[nodiscard]] std::optional<modes::Event> next();
  /// A segment of a sum. REQUIRES it fits the layout.
  void add(const Session& from, const wire::Frame& frame);
  void on_unmerge(const Session& from, const wire::Unmerge& unmerge);
  /// A chunk of a sum does not count.
  void refused(ChunkId chunk);
  /// Of the pass that is about to be closed; empty where contributions never are summed.
  [[nodiscard]] std::optional<Merged> told() const;

 private:
  [[nodiscard]] const Session* source_of(const Session& session) const;
  [[nodiscard]] bool may_merge(const modes::Lease& lease) const;
  /// In which its large chunks come.
  [[nodiscard]] wire::CodecId codec_of(const modes::Lease& lease) const;
  void begin();
  /// Why they cannot be summed any more.
  struct Broken {
    std::string why;
    bool faulty = false;  // and not to be tried again at once
  };
  /// Where they can be: empty.
  [[nodiscard]] std::optional<Broken> broken() const;
  [[nodiscard]] bool over() const;
  [[nodiscard]] bool all_begun() const;
  void end(Broken broken);

  bool possible_, on_ = false;
  std::optional<wire::CodecId> gradients_;
  const cluster::CoordinatorMachine& machine_;
  const Layout& layout_;
  Sessions& sessions_;
  Uploads& uploads_;
  MeasuredPace& pace_;
  std::uint64_t pass_ = 0;              // the newest that was looked at
  std::vector<modes::LeaseId> leases_;  // that merge, in order of positions; empty: none do
  std::vector<ChunkId> whole_;          // of sums that are here
  Merged told_;
  std::uint64_t resting_until_ = 0, rest_ = 0, good_ = 0;  // steps
  std::string rests_because_;
};

}  // namespace motley::engine
