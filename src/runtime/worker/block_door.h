#pragma once
// Where other machines that the head names get blocks of files that this one has whole. Threading: as PeerDoor.

#include <cstdint>
#include <memory>

#include "fleet/token.h"
#include "motley/result.h"
#include "runtime/head/block_desk.h"
#include "runtime/worker/peer_door.h"
#include "transport/crypto.h"
#include "wire/messages.h"

namespace motley::runtime {

class BlockDoor final : PeerDoor::Room {
 public:
  static constexpr std::size_t kGuestsMax = PeerDoor::kGuestsMax;

  /// `token`: of the head whose files these are.
  BlockDoor(std::shared_ptr<const Offers> offers, const fleet::JoinToken& token, transport::Identity identity);

  // See PeerDoor.
  Result<wire::Source> admit(const wire::Guest& guest) { return door_.admit(guest); }
  void dismiss(std::uint64_t id) { door_.dismiss(id); }
  void dismiss_all() { door_.dismiss_all(); }
  // See BlockDesk.
  void step(double seconds, std::uint64_t samples) { desk_.step(seconds, samples); }
  void set_training(bool training) { desk_.set_training(training); }

 private:
  void open(std::uint64_t id, std::uint64_t guest, std::shared_ptr<transport::Connection> connection) override;
  Status hear(std::uint64_t id, const wire::Message& message) override;
  void close(std::uint64_t id) override { desk_.close(id); }

  BlockDesk desk_;
  PeerDoor door_;
};

}  // namespace motley::runtime
