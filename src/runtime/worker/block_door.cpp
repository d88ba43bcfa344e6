#include "runtime/worker/block_door.h"

#include <string>
#include <utility>

#include "runtime/lanes.h"

namespace motley::runtime {

BlockDoor::BlockDoor(std::shared_ptr<const Offers> offers, const fleet::JoinToken& token, transport::Identity identity)
    : desk_(std::move(offers), token.run, false), door_(token, std::move(identity), kFiles, *this) {}

void BlockDoor::open(std::uint64_t id, std::uint64_t /*guest*/, std::shared_ptr<transport::Connection> connection) {
  desk_.open(id, std::move(connection));
}

Status BlockDoor::hear(std::uint64_t id, const wire::Message& message) {
  const auto* want = std::get_if<wire::Want>(&message);
  if (want == nullptr || want->offer != 0)
    return Error{ErrorCode::protocol, "expected Want, found " + std::string(wire::name_of(message)), ""};
  return desk_.ask(id, *want);
}

}  // namespace motley::runtime
