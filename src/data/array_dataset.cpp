#include "data/array_dataset.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

#include "base/assert.h"
#include "base/format.h"
#include "base/little_endian.h"
#include "base/xxh64.h"

namespace motley::data {
namespace {

void copy_floats(const std::byte* in, std::span<float> out) noexcept {
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(out.data(), in, out.size_bytes());
  } else {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = std::bit_cast<float>(load_le<std::uint32_t>(in + 4 * i));
  }
}

template <class T>
std::uint64_t hash_elements(const std::vector<T>& elements, std::uint64_t seed) {
  using Word = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  std::vector<std::byte> bytes(elements.size() * sizeof(T));
  for (std::size_t i = 0; i < elements.size(); ++i) store_le(&bytes[i * sizeof(T)], std::bit_cast<Word>(elements[i]));
  return xxh64(bytes, seed);
}

class ArrayDataset final : public Dataset {
 public:
  ArrayDataset(Parts parts, const Normalisation& normalisation) : parts_(std::move(parts)) {
    for (const std::int64_t extent : parts_.sample_shape) sample_elements_ *= static_cast<std::uint64_t>(extent);
    const std::uint64_t element_bytes = bytes_of(parts_.sample_dtype);
    const bool of_classes = parts_.target_kind == TargetKind::classes;
    MOTLEY_ASSERT(parts_.size > 0 && sample_elements_ > 0);
    MOTLEY_ASSERT(parts_.sample_dtype == DType::u8 || parts_.sample_dtype == DType::f32);
    MOTLEY_ASSERT(parts_.samples.size() == parts_.size * sample_elements_ * element_bytes);
    MOTLEY_ASSERT(parts_.classes.size() == (of_classes ? parts_.size : 0));
    MOTLEY_ASSERT(parts_.values.size() == (of_classes ? 0 : parts_.size * parts_.target_elements));
    if (of_classes) {
      classes_ = static_cast<std::uint64_t>(*std::max_element(parts_.classes.begin(), parts_.classes.end())) + 1;
    }
    for (std::size_t v = 0; v < pixel_.size(); ++v) {
      pixel_[v] = (static_cast<float>(v) / 255.0F - normalisation.mean) / normalisation.std;
    }
    fingerprint_ = describe();
  }

  [[nodiscard]] std::uint64_t size() const override { return parts_.size; }
  [[nodiscard]] const std::vector<std::int64_t>& sample_shape() const override { return parts_.sample_shape; }
  [[nodiscard]] TargetKind target_kind() const override { return parts_.target_kind; }
  [[nodiscard]] std::uint64_t target_elements() const override { return parts_.target_elements; }
  [[nodiscard]] std::uint64_t classes() const override { return classes_; }
  [[nodiscard]] const std::string& fingerprint() const override { return fingerprint_; }

  void gather(std::span<const std::uint64_t> indices, std::span<float> x) const override {
    MOTLEY_ASSERT(x.size() == indices.size() * sample_elements_);
    const std::byte* samples = parts_.samples.bytes().data();
    for (std::size_t i = 0; i < indices.size(); ++i) {
      MOTLEY_ASSERT(indices[i] < parts_.size);
      const std::span<float> row = x.subspan(i * sample_elements_, sample_elements_);
      if (parts_.sample_dtype == DType::u8) {
        const std::byte* pixels = samples + indices[i] * sample_elements_;
        for (std::size_t j = 0; j < row.size(); ++j) row[j] = pixel_[std::to_integer<std::size_t>(pixels[j])];
      } else {
        copy_floats(samples + indices[i] * row.size_bytes(), row);
      }
    }
  }

  void gather_classes(std::span<const std::uint64_t> indices, std::span<std::int64_t> y) const override {
    MOTLEY_ASSERT(parts_.target_kind == TargetKind::classes && y.size() == indices.size());
    for (std::size_t i = 0; i < indices.size(); ++i) {
      MOTLEY_ASSERT(indices[i] < parts_.size);
      y[i] = parts_.classes[indices[i]];
    }
  }

  void gather_values(std::span<const std::uint64_t> indices, std::span<float> y) const override {
    const std::uint64_t elements = parts_.target_elements;
    MOTLEY_ASSERT(parts_.target_kind == TargetKind::values && y.size() == indices.size() * elements);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      MOTLEY_ASSERT(indices[i] < parts_.size);
      std::copy_n(parts_.values.data() + indices[i] * elements, elements, y.data() + i * elements);
    }
  }

 private:
  [[nodiscard]] std::string describe() const {
    const bool of_classes = parts_.target_kind == TargetKind::classes;
    const std::uint64_t hash = xxh64(parts_.samples.bytes());
    const std::uint64_t content = of_classes ? hash_elements(parts_.classes, hash) : hash_elements(parts_.values, hash);
    const std::vector<std::uint64_t> shape(parts_.sample_shape.begin(), parts_.sample_shape.end());
    return std::to_string(parts_.size) + " samples " + to_text(parts_.sample_dtype) + " " + to_text(shape) + ", " +
           (of_classes ? std::to_string(classes_) + " classes"
                       : std::to_string(parts_.target_elements) + " values each") +
           ", content " + formatted("%016llx", static_cast<unsigned long long>(content));
  }

  Parts parts_;
  std::uint64_t sample_elements_ = 1;
  std::uint64_t classes_ = 0;
  std::array<float, 256> pixel_{};
  std::string fingerprint_;
};

}  // namespace

std::shared_ptr<const Dataset> make_dataset(Parts parts, const Normalisation& normalisation) {
  return std::make_shared<ArrayDataset>(std::move(parts), normalisation);
}

std::string complain_about_classes(const std::vector<std::int64_t>& classes) {
  for (std::size_t i = 0; i < classes.size(); ++i) {
    if (classes[i] >= 0 && classes[i] < kClassesMax) continue;
    return std::to_string(classes[i]) + " at sample " + std::to_string(i);
  }
  return {};
}

}  // namespace motley::data
