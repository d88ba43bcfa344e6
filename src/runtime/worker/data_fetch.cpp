#include "runtime/worker/data_fetch.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>

#include "data/uri.h"
#include "runtime/mailbox.h"
#include "wire/limits.h"

namespace motley::runtime {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kWindow = 16;                       // blocks that are asked for at once of each who has them
constexpr Duration kSilence = 10s;                        // then the connection is made again
constexpr Duration kPauseFirst = 200ms, kPauseMost = 3s;  // between two tries
constexpr Duration kLook = 100ms;                         // for whether to stop

Error interrupted() { return {ErrorCode::interrupted, "interrupted before the head's data were here", ""}; }

Error damaged() {
  return {ErrorCode::protocol, "the head's list of files cannot be",
          "install the same version of motley on both machines"};
}

}  // namespace

Status DataFetch::wait(Duration time) {
  for (const Time end = now() + time; now() < end;) {
    if (stops_) return interrupted();
    std::this_thread::sleep_for(std::min(kLook, end - now()));
  }
  return {};
}

Result<BlockFetch::Event> DataFetch::next() {
  Time heard = now();
  for (;;) {
    if (stops_) return interrupted();
    {
      std::unique_lock lock(link_.inbox().mutex);
      link_.inbox().changed.wait_for(lock, kLook, [this] { return !link_.inbox().events.empty(); });
    }
    std::optional<BlockFetch::Event> event = link_.take();
    if (!event && now() < heard + kSilence) continue;
    heard = now();
    if (event) {
      if (const auto* refused = std::get_if<BlockLink::Refused>(&*event)) return refused->error;
      if (std::holds_alternative<BlockLink::Connected>(*event)) pause_ = {};
      const auto* broken = std::get_if<BlockLink::Broken>(&*event);
      if (broken != nullptr && broken->done)
        return Error{ErrorCode::network, "the run was over before this machine had its data",
                     "join while the head trains"};
      if (std::holds_alternative<wire::Offered>(*event) || std::holds_alternative<BlockLink::Content>(*event))
        return std::move(*event);
      if (broken == nullptr) continue;
    }
    pause_ = std::clamp(2 * pause_, kPauseFirst, kPauseMost);
    if (Status waited = wait(pause_); !waited) return waited.error();
    link_.dial();
  }
}

template <class Wanted>
Result<Wanted> DataFetch::await() {
  Result<BlockFetch::Event> event = next();
  if (!event) return event.error();
  auto* found = std::get_if<Wanted>(&*event);
  if (found == nullptr) return damaged();
  return std::move(*found);
}

Result<KeptSet> DataFetch::run() {
  link_.dial();
  link_.ask(1);
  const Result<wire::Offered> offer = await<wire::Offered>();
  if (!offer) {
    none_ = offer.error().code == ErrorCode::mismatch || offer.error().code == ErrorCode::protocol;
    return offer.error();
  }
  if (offer->sha256.size() != sizeof(blocks::Hash) || offer->bytes == 0 || offer->bytes > wire::kManifestBytesMax)
    return damaged();
  blocks::Hash hash;
  std::ranges::copy(offer->sha256, hash.begin());
  sources_ = offer->sources;
  link_.want(hash, static_cast<std::size_t>(offer->bytes), true);
  const Result<BlockLink::Content> list = await<BlockLink::Content>();
  if (!list) return list.error();
  const std::string text(reinterpret_cast<const char*>(list->bytes.data()), list->bytes.size());
  Result<blocks::Manifest> manifest = blocks::parse_manifest(text);
  if (!manifest) return manifest.error();
  Result<KeptSet> set = KeptSet::open(home_, std::move(*manifest), text);
  if (!set) return set.error();
  while (!set->is_whole()) {
    const Result<bool> ours = set->take();
    if (!ours) return ours.error();
    if (*ours) {
      if (sources_) link_.find_sources(hash);
      if (Status filled = fill(*set); !filled) return filled.error();
    } else if (Status waited = wait(kLook); !waited) {
      return waited.error();
    }
  }
  return set;
}

Status DataFetch::fill(KeptSet& set) {
  if (Status room = set.begin(home_); !room) return room;
  done_ = 0;
  for (;;) {
    const auto following = set.next();
    if (!following) return following.error();
    if (!*following) return set.finish();
    const auto [number, first] = **following;
    if (Status filled = fill_file(set, set.manifest().files[number], first); !filled) return filled;
  }
}

// Content that comes early, or that the file has more than once, waits for its turn.
Status DataFetch::fill_file(KeptSet& set, const blocks::Listed& file, std::size_t first) {
  std::map<blocks::Hash, std::vector<std::byte>> came;
  std::size_t asked = first, written = first;
  const auto needed = [&](const blocks::Hash& hash) {
    for (std::size_t block = written; block < asked; ++block)
      if (file.hash(block) == hash) return true;
    return false;
  };
  for (std::size_t block = 0; block < first; ++block) done_ += file.bytes(block);
  while (written < file.count()) {
    while (asked < file.count() && asked - written < link_.window(kWindow) && link_.has_room()) {
      const blocks::Hash hash = file.hash(asked);
      if (!needed(hash)) link_.want(hash, file.bytes(asked));
      ++asked;
    }
    Result<BlockLink::Content> content = await<BlockLink::Content>();
    if (!content) return content.error();
    came[content->hash] = std::move(content->bytes);
    for (auto found = came.find(file.hash(written)); found != came.end();) {
      if (Status put = set.append(found->second); !put) return put;
      done_ += file.bytes(written++);
      if (!needed(found->first)) came.erase(found);
      found = written < asked ? came.find(file.hash(written)) : came.end();
    }
    if (progress_) progress_(done_, set.manifest().size());
  }
  return {};
}

Result<std::string> uri_here(const KeptSet& set, const std::string& uri, const std::string& place) {
  std::string images, labels, direct;
  std::size_t count = 0;
  for (const blocks::Listed& file : set.manifest().files) {
    const std::string path = (set.path() / file.name).string();
    if (!file.name.starts_with(place + "/")) continue;
    const std::string_view name = std::string_view(file.name).substr(place.size() + 1);
    if (name.starts_with("images/")) {
      images = path;
    } else if (name.starts_with("labels/")) {
      labels = path;
    } else {
      direct = path;
      ++count;
    }
  }
  if (!images.empty() && !labels.empty()) return images + "+" + labels;
  if (count == 1) return data::names_text(uri) ? "text:" + direct : direct;
  if (count > 1) return (set.path() / place).string();
  return Error{ErrorCode::mismatch, "the head offers no files for " + uri, "offer a copy of your own: --data-dir DIR"};
}

}  // namespace motley::runtime
