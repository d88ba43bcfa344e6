#pragma once
// A data set in memory: samples of one shape with integer or float targets. Immutable after loading; any thread may
// gather.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/source/download.h"
#include "motley/result.h"

namespace motley::data {

enum class TargetKind : std::uint8_t { classes, values };  // int64 class numbers | float32 vectors

class Dataset {
 public:
  virtual ~Dataset() = default;
  [[nodiscard]] virtual std::uint64_t size() const = 0;
  [[nodiscard]] virtual const std::vector<std::int64_t>& sample_shape() const = 0;  // [1, 28, 28]; [D]
  [[nodiscard]] virtual TargetKind target_kind() const = 0;
  [[nodiscard]] virtual std::uint64_t target_elements() const = 0;  // of a sample: 1 for classes, one a byte for text
  [[nodiscard]] virtual std::uint64_t classes() const = 0;          // largest class + 1; 0 for values
  /// Equal on two machines iff the data are: sizes, shapes, dtypes and a 64-bit content hash, as text. Computed at
  /// load.
  [[nodiscard]] virtual const std::string& fingerprint() const = 0;
  /// x: indices.size() * product(sample_shape) floats, normalised: u8 pixels become (v / 255 - mean) / std in float32.
  /// The bytes of a text stay the numbers they are.
  virtual void gather(std::span<const std::uint64_t> indices, std::span<float> x) const = 0;
  /// y: indices.size() * target_elements() class numbers. REQUIRES classes.
  virtual void gather_classes(std::span<const std::uint64_t> indices, std::span<std::int64_t> y) const = 0;
  virtual void gather_values(std::span<const std::uint64_t> indices, std::span<float> y) const = 0;  // REQUIRES values
};

struct Normalisation {
  float mean = 0;
  float std = 1;
};

struct OpenOptions {
  Normalisation normalisation;
  std::string cache_dir;         // where downloads are kept
  Sha256Hex sha256_hex;          // REQUIRED where cache_dir is
  DownloadProgress on_download;  // may be empty
  Retrieve retrieve;             // empty: nothing is downloaded
  std::uint64_t block = 256;     // text: bytes of a sample, > 0
  bool hold_out = false;         // text: the last tenth of the samples is the part "test", the others are "train"
};

/// `uri`: "fashion-mnist", "mnist" (with "train" or "test" as `part`); a directory holding IDX files under their usual
/// names; "images.idx3-ubyte[.gz]+labels.idx1-ubyte[.gz]"; "x.npy+y.npy"; a packed file "*.motley";
/// "text:PATH" or "*.txt" (any file as bytes); "synthetic:SIZE:FEATURES:CLASSES" (gaussian blobs from a fixed seed, for
/// tests and examples). Errors: input (missing, damaged: which file, which byte, what was expected; the nearest known
/// name for an unknown one), network (download failed), io.
Result<std::shared_ptr<const Dataset>> open_dataset(const std::string& uri, const std::string& part,
                                                    const OpenOptions& options);

}  // namespace motley::data
