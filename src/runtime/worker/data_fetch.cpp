#include "runtime/worker/data_fetch.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>

#include "data/files.h"
#include "data/uri.h"
#include "runtime/mailbox.h"
#include "runtime/worker/coming_source.h"
#include "wire/limits.h"

namespace motley::runtime {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kWindow = 16;                       // blocks that are asked for at once of each who has them
constexpr Duration kSilence = 10s;                        // then the connection is made again
constexpr Duration kPauseFirst = 200ms, kPauseMost = 3s;  // between two tries
constexpr Duration kLook = 100ms;                         // for whether to stop
constexpr Duration kWishLook = 20ms;                      // for whether somebody waits for a block

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

Result<std::optional<BlockFetch::Event>> DataFetch::look(Duration time) {
  if (stops_) return interrupted();
  {
    std::unique_lock lock(link_->inbox().mutex);
    link_->inbox().changed.wait_for(lock, time, [this] { return !link_->inbox().events.empty(); });
  }
  std::optional<Event> event = link_->take();
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
  link_->dial();
  return std::optional<Event>();
}

Status DataFetch::heed(const Event& event) {
  if (const auto* refused = std::get_if<BlockLink::Refused>(&event)) return refused->error;
  if (std::holds_alternative<BlockLink::Connected>(event)) pause_ = {};
  if (const auto* dropped = std::get_if<BlockFetch::Dropped>(&event)) {
    note(dropped->why);
    if (dropped->origin) origin_.reset();
  }
  const auto* broken = std::get_if<BlockLink::Broken>(&event);
  if (broken == nullptr || !broken->done) return {};
  return Error{ErrorCode::network, "the run was over before this machine had its data", "join while the head trains"};
}

template <class Wanted>
Result<Wanted> DataFetch::await() {
  for (;;) {
    Result<std::optional<Event>> event = look(kLook);
    if (!event) return event.error();
    if (!*event) continue;
    auto* found = std::get_if<Wanted>(&**event);
    if (found == nullptr) return damaged();
    return std::move(*found);
  }
}

Status DataFetch::find() {
  heard_ = now();
  link_->dial();
  link_->ask(1);
  const Result<wire::Offered> offer = await<wire::Offered>();
  if (!offer) {
    none_ = offer.error().code == ErrorCode::mismatch || offer.error().code == ErrorCode::protocol;
    return offer.error();
  }
  if (offer->sha256.size() != sizeof(blocks::Hash) || offer->bytes == 0 || offer->bytes > wire::kManifestBytesMax)
    return damaged();
  std::ranges::copy(offer->sha256, hash_.begin());
  sources_ = offer->sources;
  train_fingerprint_ = offer->train_fingerprint;
  test_fingerprint_ = offer->test_fingerprint;
  link_->want(hash_, static_cast<std::size_t>(offer->bytes), true);
  const Result<BlockLink::Content> list = await<BlockLink::Content>();
  if (!list) return list.error();
  const std::string text(reinterpret_cast<const char*>(list->bytes.data()), list->bytes.size());
  Result<blocks::Manifest> manifest = blocks::parse_manifest(text);
  if (!manifest) return manifest.error();
  Result<KeptSet> set = KeptSet::open(home_, std::move(*manifest), text);
  if (!set) return set.error();
  set_.emplace(std::move(*set));
  return {};
}

Status DataFetch::begin() {
  if (Status found = find(); !found) return found;
  while (!set_->is_whole()) {
    const Result<bool> ours = set_->take();
    if (!ours) return ours.error();
    if (!*ours) {
      if (Status waited = wait(kLook); !waited) return waited;
      continue;
    }
    Result<std::vector<bool>> here = set_->begin(home_, stops_);
    if (!here) return here.error();
    here_ = std::move(*here);
    arrivals_ = std::make_shared<Arrivals>(set_->block_count());
    for (std::size_t block = 0; block < here_.size(); ++block)
      if (here_[block]) arrivals_->set_here(block);
    return {};
  }
  return {};
}

Status DataFetch::fill() {
  Status filled = arrivals_ ? put_all() : Status();
  if (!filled) arrivals_->fail(filled.error());
  origin_.reset();
  link_.reset();
  return filled;
}

Status DataFetch::put_all() {
  blocks::Missing missing(set_->manifest(), here_);
  const std::uint64_t total = set_->manifest().size();
  std::uint64_t done = total - missing.bytes();
  if (sources_) link_->find_sources(hash_);
  while (!missing.empty()) {
    for (const std::size_t block : arrivals_->wishes()) missing.wish(block);
    while (link_->has_room()) {
      const std::optional<blocks::Missing::Next> next = missing.next(link_->window(kWindow));
      if (!next) break;
      link_->want(next->hash, next->bytes, next->waited_for);
    }
    if (origin_) ask_origin(missing);
    const Result<std::optional<Event>> event = look(kWishLook);
    if (!event) return event.error();
    if (!*event) continue;
    const auto* content = std::get_if<BlockLink::Content>(&**event);
    if (content == nullptr) return damaged();
    for (const std::size_t block : missing.take(content->hash)) {
      if (Status put = set_->put(block, content->bytes); !put) return put;
      arrivals_->set_here(block);
      done += content->bytes.size();
    }
    if (told_.progress) told_.progress(done, total);
  }
  if (const std::uint64_t bytes = link_->bytes_from_origin(); bytes > 0)
    note(std::to_string(bytes) + " bytes of the head's data came from their address");
  return set_->finish();
}

Status DataFetch::use_origin(const std::vector<std::string>& addresses, const std::vector<std::string>& allowed,
                             const OpenOrigin& open) {
  if (!arrivals_) return {};
  std::vector<OriginFile> files;
  files.reserve(addresses.size());
  for (std::size_t file = 0; file < addresses.size(); ++file)
    files.push_back({addresses[file], set_->manifest().files[file].size});
  Result<std::unique_ptr<Origin>> origin = open(files, allowed, link_);
  if (!origin) return origin.error();
  origin_ = std::move(*origin);
  return {};
}

void DataFetch::ask_origin(const blocks::Missing& missing) {
  for (const blocks::Sources::Open& each : link_->origin_asked()) {
    const std::optional<std::size_t> block = missing.find(each.hash);
    if (!block) continue;
    const std::size_t file = set_->file_of(*block);
    origin_->ask(file, (*block - set_->first_block(file)) * wire::kBlockBytesMax, each);
  }
}

Result<std::shared_ptr<const data::Source>> DataFetch::open(const std::string& path) const {
  const std::vector<blocks::Listed>& files = set_->manifest().files;
  for (std::size_t file = 0; arrivals_ && file < files.size(); ++file)
    if (set_->place(files[file]) == std::filesystem::path(path))
      return open_coming(path, set_->first_block(file), arrivals_);
  return data::open_source(path);
}

std::vector<std::string> addresses_of(const KeptSet& set, const std::string& train_uri, const std::string& test_uri,
                                      const std::string& test_place) {
  const std::vector<blocks::Listed>& files = set.manifest().files;
  std::vector<std::string> found(files.size());
  const auto look = [&](const std::string& uri, const std::string& place) {
    std::vector<std::string> parts;
    static_cast<void>(data::without_addresses(uri, [&](const std::string& address) -> Result<std::string> {
      if (address.starts_with("http://") || address.starts_with("https://")) parts.push_back(address);
      return address;
    }));
    const bool pair = parts.size() == 2;
    for (std::size_t file = 0; file < files.size() && !parts.empty(); ++file) {
      if (files[file].name.starts_with(place + (pair ? "/images/" : "/"))) found[file] = parts[0];
      if (pair && files[file].name.starts_with(place + "/labels/")) found[file] = parts[1];
    }
  };
  if (!test_uri.empty()) look(test_uri, test_place);
  look(train_uri, "train");
  // An address is of one file, and of a set some of whose files have none all come from the head.
  std::vector<std::string> sorted = found;
  std::ranges::sort(sorted);
  const bool each_has_its_own = !sorted.front().empty() && std::ranges::adjacent_find(sorted) == sorted.end();
  return each_has_its_own ? found : std::vector<std::string>();
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
