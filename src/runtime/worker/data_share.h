#pragma once
// Hands on files of the head that this machine has whole, to machines that the head names: it says so to the head, on a
// connection of its own, and opens a door for those. It reads and sends as far as steps of this machine do not become
// longer by it. Any thread.

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "fleet/token.h"
#include "motley/result.h"
#include "runtime/head/block_desk.h"
#include "runtime/worker/block_door.h"
#include "runtime/worker/block_link.h"

namespace motley::runtime {

class DataShare {
 public:
  DataShare(fleet::JoinToken token, std::string name, transport::Identity identity);
  ~DataShare() { close(); }
  DataShare(const DataShare&) = delete;
  DataShare& operator=(const DataShare&) = delete;

  /// A set that is whole here, and stays as it is. REQUIRES a head that said Offered.sources. Errors: as Offers::add().
  Status add(blocks::Catalogue::Offer offer);
  /// A step of this machine is over that has made this version.
  void step(std::uint64_t version);
  /// Nothing is handed on any more. Not from its own thread.
  void close();

 private:
  void loop();
  /// False: the head wants nothing more of this machine.
  bool take(BlockLink::Event event);
  void let_in(const wire::Guest& guest);
  void look_at_steps();

  const fleet::JoinToken token_;
  const std::string name_;
  const transport::Identity identity_;
  const std::shared_ptr<Offers> offers_ = std::make_shared<Offers>();
  std::mutex mutex_;
  std::vector<wire::Keeps> sets_;
  std::uint64_t version_ = 0;
  Time stepped_{};
  double step_seconds_ = 0;
  std::unique_ptr<BlockDoor> door_;
  std::unique_ptr<BlockLink> link_;
  std::atomic<bool> stops_ = false;
  std::thread thread_;
};

}  // namespace motley::runtime
