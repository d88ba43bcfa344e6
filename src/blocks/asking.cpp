#include "blocks/asking.h"

#include <string>
#include <utility>

#include "base/assert.h"
#include "wire/limits.h"

namespace motley::blocks {
namespace {

Error unwanted(std::string what) {
  return {ErrorCode::protocol, "the head sent " + std::move(what),
          "install the same version of motley on both machines"};
}

}  // namespace

bool Asking::has_room() const noexcept { return open_.size() < wire::kWantsMax; }

std::optional<wire::Want> Asking::want(const Hash& hash, std::size_t bytes) {
  MOTLEY_ASSERT(has_room() && bytes > 0 && bytes <= wire::kManifestBytesMax);
  const auto [found, fresh] = open_.try_emplace(prefix_of(hash), Open{.hash = hash, .bytes = bytes});
  return fresh ? std::optional(asked(found->second)) : std::nullopt;
}

wire::Want Asking::asked(const Open& open) { return {.offer = 0, .sha256 = {open.hash.begin(), open.hash.end()}}; }

Result<Asking::Added> Asking::add(const wire::Frame& frame) {
  const wire::FrameHeader& header = frame.header;
  const auto found = open_.find(header.subject);
  if (header.type != wire::FrameType::block || found == open_.end()) return unwanted("a block that nobody asked for");
  Open& open = found->second;
  if (header.total != open.bytes || header.offset != open.content.size() || frame.body.empty() ||
      frame.body.size() > open.bytes - open.content.size()) {
    return unwanted("a piece of " + std::to_string(frame.body.size()) + " bytes at " + std::to_string(header.offset) +
                    " of " + std::to_string(header.total) + " of a block; expected one at " +
                    std::to_string(open.content.size()) + " of " + std::to_string(open.bytes));
  }
  const auto body = frame.body.bytes();
  if (open.content.empty()) open.content.reserve(open.bytes);
  open.content.insert(open.content.end(), body.begin(), body.end());
  if (open.content.size() < open.bytes) return Added{};
  if (hash_of_(open.content) == open.hash) {
    Added added{.whole = open.hash, .content = std::move(open.content)};
    open_.erase(found);
    return added;
  }
  open.content.clear();
  if (++open.attempts < kAttemptsMax) return Added{.again = asked(open)};
  return Error{ErrorCode::mismatch,
               "a block came " + std::to_string(kAttemptsMax) + " times with another content than its hash says",
               "did a file change on the head while it was offered? start the run there again"};
}

std::vector<wire::Want> Asking::restart() {
  std::vector<wire::Want> again;
  for (auto& [prefix, open] : open_) {
    open.content.clear();
    again.push_back(asked(open));
  }
  return again;
}

}  // namespace motley::blocks
