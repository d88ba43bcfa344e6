#include "runtime/worker/data_fetch.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>

#include "blocks/missing.h"
#include "data/uri.h"
#include "runtime/mailbox.h"
#include "wire/limits.h"

namespace motley::runtime {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kWindow = 16;                       // blocks that are asked for at once
constexpr Duration kSilence = 10s;                        // then the connection is made again
constexpr Duration kPauseFirst = 200ms, kPauseMost = 3s;  // between two tries
constexpr Duration kLook = 100ms;                         // for whether to stop

Error interrupted() { return {ErrorCode::interrupted, "interrupted before the head's data were here", ""}; }

Error damaged() {
  return {ErrorCode::protocol, "the head sent an invalid list of files",
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

Result<std::optional<BlockLink::Event>> DataFetch::look() {
  if (stops_) return interrupted();
  std::optional<Event> event;
  {
    std::unique_lock lock(link_.mutex());
    link_.changed().wait_for(lock, kLook, [this] { return link_.has_event(); });
    event = link_.take();
  }
  if (!event && now() < heard_ + kSilence) return std::optional<Event>();
  heard_ = now();
  if (event) {
    if (Status heeded = heed(*event); !heeded) return heeded.error();
    if (std::holds_alternative<wire::Offered>(*event) || std::holds_alternative<BlockLink::Content>(*event))
      return event;
    if (!std::holds_alternative<BlockLink::Broken>(*event)) return std::optional<Event>();
  }
  pause_ = std::clamp(2 * pause_, kPauseFirst, kPauseMost);
  if (Status waited = wait(pause_); !waited) return waited.error();
  link_.dial();
  return std::optional<Event>();
}

Status DataFetch::heed(const Event& event) {
  if (const auto* refused = std::get_if<BlockLink::Refused>(&event)) return refused->error;
  if (std::holds_alternative<BlockLink::Connected>(event)) pause_ = {};
  const auto* broken = std::get_if<BlockLink::Broken>(&event);
  if (broken == nullptr || !broken->done) return {};
  return Error{ErrorCode::network, "the run was over before this machine had its data", "join while the head trains"};
}

template <class Wanted>
Result<Wanted> DataFetch::await() {
  for (;;) {
    Result<std::optional<Event>> event = look();
    if (!event) return event.error();
    if (!*event) continue;
    auto* found = std::get_if<Wanted>(&**event);
    if (found == nullptr) return damaged();
    return std::move(*found);
  }
}

Result<KeptSet> DataFetch::find() {
  heard_ = now();
  link_.dial();
  link_.ask(1);
  const Result<wire::Offered> offer = await<wire::Offered>();
  if (!offer) {
    none_ = offer.error().code == ErrorCode::mismatch || offer.error().code == ErrorCode::protocol;
    return offer.error();
  }
  if (offer->sha256.size() != sizeof(blocks::Hash) || offer->bytes == 0 || offer->bytes > wire::kManifestBytesMax)
    return damaged();
  blocks::Hash hash{};
  std::ranges::copy(offer->sha256, hash.begin());
  link_.want(hash, static_cast<std::size_t>(offer->bytes));
  const Result<BlockLink::Content> list = await<BlockLink::Content>();
  if (!list) return list.error();
  const std::string text(reinterpret_cast<const char*>(list->bytes.data()), list->bytes.size());
  Result<blocks::Manifest> manifest = blocks::parse_manifest(text);
  if (!manifest) return manifest.error();
  return KeptSet::open(home_, std::move(*manifest), text);
}

Result<KeptSet> DataFetch::run() {
  Result<KeptSet> set = find();
  while (set && !set->is_whole()) {
    const Result<bool> ours = set->take();
    if (!ours) return ours.error();
    if (!*ours) {
      if (Status waited = wait(kLook); !waited) return waited.error();
      continue;
    }
    const Result<std::vector<bool>> here = set->begin(home_, stops_);
    if (!here) return here.error();
    if (Status filled = fill(*set, *here); !filled) return filled.error();
  }
  return set;
}

Status DataFetch::fill(KeptSet& set, const std::vector<bool>& here) {
  blocks::Missing missing(set.manifest(), here);
  const std::uint64_t total = set.manifest().size();
  std::uint64_t done = total - missing.bytes();
  while (!missing.empty()) {
    while (const std::optional<blocks::Missing::Next> next = missing.next(kWindow)) link_.want(next->hash, next->bytes);
    const Result<std::optional<Event>> event = look();
    if (!event) return event.error();
    if (!*event) continue;
    const auto* content = std::get_if<BlockLink::Content>(&**event);
    if (content == nullptr) return damaged();
    for (const std::size_t block : missing.take(content->hash)) {
      if (Status put = set.put(block, content->bytes); !put) return put;
      done += content->bytes.size();
    }
    if (progress_) progress_(done, total);
  }
  return set.finish();
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
