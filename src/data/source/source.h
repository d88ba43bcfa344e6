#pragma once
// Bytes by range, wherever they lie. A source knows nothing of what its bytes mean: that is a format's. Any thread.

#include <cstdint>
#include <memory>
#include <string>

#include "motley/bytes.h"
#include "motley/result.h"

namespace motley::data {

class Source {
 public:
  virtual ~Source() = default;
  /// For messages: the path, the address.
  [[nodiscard]] virtual const std::string& name() const = 0;
  [[nodiscard]] virtual std::uint64_t size() const = 0;
  /// A copy of a range: it stays what it is when the source changes later. REQUIRES offset + count <= size().
  /// Errors: io, network, memory.
  [[nodiscard]] virtual Result<SharedBytes> read(std::uint64_t offset, std::uint64_t count) const = 0;
  /// All bytes, where they lie if the source can: then nobody may change it while they are in use.
  [[nodiscard]] virtual Result<SharedBytes> view() const { return read(0, size()); }
};

/// What a URI names; as yet always a file. Errors: input (missing, not a file), io.
Result<std::shared_ptr<const Source>> open_source(const std::string& uri);

}  // namespace motley::data
