#pragma once
// What `motley train softmax` takes: key=value. A head is another machine's, so every machine checks them.

#include <string>
#include <vector>

#include "motley/result.h"
#include "softmax/blobs.h"

namespace motley::softmax {

inline constexpr std::uint64_t kSamplesMax = std::uint64_t{1} << 28;  // numbers of all samples of a part
inline constexpr std::uint64_t kWeightsMax = std::uint64_t{1} << 26;

struct Arguments {
  BlobSizes train{4096, 32, 10};
  std::uint64_t test = 1024;  // samples; 0: there is no evaluation
  std::string optimizer = "sgd";
  double lr = 0.1;
  double momentum = 0;  // sgd

  [[nodiscard]] BlobSizes test_sizes() const { return {test, train.features, train.classes}; }
};

/// Errors: input, with the key that is meant.
Result<Arguments> parse_arguments(const std::vector<std::string>& words);

}  // namespace motley::softmax
