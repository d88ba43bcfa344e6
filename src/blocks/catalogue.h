#pragma once
// What a head offers: files, cut into blocks, with the manifests that name them. What is not in here nobody gets. Pure.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "blocks/hash.h"
#include "motley/bytes.h"
#include "motley/result.h"

namespace motley::blocks {

inline constexpr std::size_t kOffersMax = 1000;

struct File {
  std::string path{};  // on the head
  std::uint64_t size = 0;
  std::vector<std::uint8_t> hashes{};  // of its blocks, one after the other
};

/// Where content lies: in a file, or, without one, in the manifest of the offer.
struct Place {
  std::size_t offer = 0;
  std::optional<std::size_t> file{};
  std::uint64_t offset = 0;
  std::size_t bytes = 0;
};

class Catalogue {
 public:
  struct Offer {
    SharedBytes manifest;
    Hash hash{};  // of the manifest
    std::vector<File> files{};
  };

  /// Errors: input, where it is larger than what may be offered, or a file has another number of blocks than its size
  /// asks for.
  Status add(Offer offer);
  [[nodiscard]] std::size_t size() const noexcept { return offers_.size(); }
  /// `number`: from 1, in the order in which they were added; null: there is none.
  [[nodiscard]] const Offer* offer(std::uint64_t number) const noexcept;
  [[nodiscard]] std::optional<Place> find(const Hash& hash) const;
  /// REQUIRES that the place was found here.
  [[nodiscard]] const File& file(const Place& place) const { return offers_[place.offer].files[*place.file]; }
  [[nodiscard]] const SharedBytes& manifest(const Place& place) const { return offers_[place.offer].manifest; }

 private:
  struct Entry {
    Hash hash{};
    Place place{};
  };
  std::vector<Offer> offers_;
  std::vector<Entry> entries_;  // by hash
};

}  // namespace motley::blocks
