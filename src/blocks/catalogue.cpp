#include "blocks/catalogue.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "wire/limits.h"

namespace motley::blocks {

Status Catalogue::add(Offer offer) {
  if (offers_.size() >= kOffersMax)
    return Error{ErrorCode::input, "at most " + std::to_string(kOffersMax) + " sets of files are offered", ""};
  if (offer.manifest.empty() || offer.manifest.size() > wire::kManifestBytesMax) {
    return Error{ErrorCode::input,
                 "the list of the files has " + std::to_string(offer.manifest.size()) + " bytes; expected at most " +
                     std::to_string(wire::kManifestBytesMax),
                 "put many small files into few large ones, as shards or archives"};
  }
  const std::size_t number = offers_.size();
  std::vector<Entry> entries{{offer.hash, {.offer = number, .bytes = offer.manifest.size()}}};
  for (std::size_t f = 0; f < offer.files.size(); ++f) {
    const File& file = offer.files[f];
    const std::uint64_t blocks = file.size / wire::kBlockBytesMax + (file.size % wire::kBlockBytesMax != 0 ? 1 : 0);
    if (file.hashes.size() % sizeof(Hash) != 0 || file.hashes.size() / sizeof(Hash) != blocks) {
      return Error{ErrorCode::input, file.path + ": expected a hash for each of " + std::to_string(blocks) + " blocks",
                   ""};
    }
    for (std::uint64_t b = 0; b < blocks; ++b) {
      Entry entry;
      std::copy_n(file.hashes.begin() + static_cast<std::ptrdiff_t>(b * sizeof(Hash)), sizeof(Hash),
                  entry.hash.begin());
      const std::uint64_t offset = b * wire::kBlockBytesMax;
      entry.place = {
          .offer = number,
          .file = f,
          .offset = offset,
          .bytes = static_cast<std::size_t>(std::min<std::uint64_t>(wire::kBlockBytesMax, file.size - offset))};
      entries.push_back(entry);
    }
  }
  offers_.push_back(std::move(offer));
  entries_.insert(entries_.end(), entries.begin(), entries.end());
  std::ranges::sort(entries_, {}, [](const Entry& entry) {  // of equal content the first is served
    return std::tuple(entry.hash, entry.place.offer, entry.place.file, entry.place.offset);
  });
  return {};
}

const Catalogue::Offer* Catalogue::offer(std::uint64_t number) const noexcept {
  return number == 0 || number > offers_.size() ? nullptr : &offers_[number - 1];
}

std::optional<Place> Catalogue::find(const Hash& hash) const {
  const auto found = std::ranges::lower_bound(entries_, hash, {}, &Entry::hash);
  if (found == entries_.end() || found->hash != hash) return std::nullopt;
  return found->place;
}

}  // namespace motley::blocks
