#pragma once
// What a run asks of a data set, whoever reads its samples. Immutable; any thread.

#include <cstdint>
#include <string>

namespace motley::data {

class Dataset {
 public:
  virtual ~Dataset() = default;
  [[nodiscard]] virtual std::uint64_t size() const = 0;  // samples
  /// Equal on two machines iff the data are, as text.
  [[nodiscard]] virtual const std::string& fingerprint() const = 0;
};

}  // namespace motley::data
