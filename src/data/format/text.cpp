#include "data/format/text.h"

#include "base/assert.h"
#include "base/format.h"
#include "base/xxh64.h"

namespace motley::data {
namespace {

constexpr std::uint64_t kBytes = 256;  // classes: what a byte can be

class TextDataset final : public Dataset {
 public:
  /// `bytes`: `size` windows of `block`, and the byte after the last.
  TextDataset(SharedBytes bytes, std::uint64_t size, std::uint64_t block)
      : bytes_(std::move(bytes)), size_(size), block_(block), shape_{static_cast<std::int64_t>(block)} {
    MOTLEY_ASSERT(size > 0 && block > 0 && bytes_.size() == size * block + 1);
    fingerprint_ = std::to_string(size) + " samples u8 [" + std::to_string(block) + "], " + std::to_string(kBytes) +
                   " classes a byte, content " +
                   formatted("%016llx", static_cast<unsigned long long>(xxh64(bytes_.bytes())));
  }

  [[nodiscard]] std::uint64_t size() const override { return size_; }
  [[nodiscard]] const std::vector<std::int64_t>& sample_shape() const override { return shape_; }
  [[nodiscard]] TargetKind target_kind() const override { return TargetKind::classes; }
  [[nodiscard]] std::uint64_t target_elements() const override { return block_; }
  [[nodiscard]] std::uint64_t classes() const override { return kBytes; }
  [[nodiscard]] const std::string& fingerprint() const override { return fingerprint_; }

  void gather(std::span<const std::uint64_t> indices, std::span<float> x) const override { copy(indices, 0, x); }
  void gather_classes(std::span<const std::uint64_t> indices, std::span<std::int64_t> y) const override {
    copy(indices, 1, y);
  }
  void gather_values(std::span<const std::uint64_t>, std::span<float>) const override { MOTLEY_ASSERT(false); }

 private:
  template <class T>
  void copy(std::span<const std::uint64_t> indices, std::uint64_t shift, std::span<T> out) const {
    MOTLEY_ASSERT(out.size() == indices.size() * block_);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      MOTLEY_ASSERT(indices[i] < size_);
      const std::byte* window = bytes_.bytes().data() + indices[i] * block_ + shift;
      for (std::size_t j = 0; j < block_; ++j) out[i * block_ + j] = static_cast<T>(std::to_integer<int>(window[j]));
    }
  }

  SharedBytes bytes_;
  std::uint64_t size_, block_;
  std::vector<std::int64_t> shape_;
  std::string fingerprint_;
};

}  // namespace

Result<std::shared_ptr<const Dataset>> read_text(const Source& source, const std::string& part,
                                                 const OpenOptions& options) {
  const std::uint64_t block = options.block;
  MOTLEY_ASSERT(block > 0);
  const std::uint64_t windows = source.size() == 0 ? 0 : (source.size() - 1) / block;
  const std::uint64_t least = options.hold_out ? 2 : 1;
  if (windows < least) {
    return Error{ErrorCode::input,
                 source.name() + ": expected at least " + std::to_string(least * block + 1) + " bytes (" +
                     (options.hold_out ? "a window of " + std::to_string(block) + " to train on, one to test with"
                                       : "a window of " + std::to_string(block)) +
                     " and the byte after it), found " + std::to_string(source.size()),
                 "use a longer file, or a smaller model.block"};
  }
  const std::uint64_t for_training = options.hold_out ? windows * 9 / 10 : windows;
  const bool rest = options.hold_out && part == "test";
  const std::uint64_t first = rest ? for_training : 0;
  const std::uint64_t size = rest ? windows - for_training : for_training;
  // A copy, not a view: people go on editing their texts while a model trains.
  const Result<SharedBytes> bytes = source.read(first * block, size * block + 1);
  if (!bytes) return bytes.error();
  return std::shared_ptr<const Dataset>(std::make_shared<TextDataset>(*bytes, size, block));
}

}  // namespace motley::data
