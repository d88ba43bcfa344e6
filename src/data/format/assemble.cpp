#include "data/format/assemble.h"

#include <bit>

#include "base/little_endian.h"
#include "data/format/gzip.h"
#include "data/format/idx.h"
#include "data/format/npy.h"
#include "data/source/buffer.h"

namespace motley::data {
namespace {

bool is_floating(DType dtype) noexcept { return dtype == DType::f32 || dtype == DType::f64; }

std::int64_t integer_at(const Array& array, std::uint64_t i) noexcept {
  const std::byte* in = array.bytes.data() + i * bytes_of(array.dtype);
  if (array.dtype == DType::i64) return static_cast<std::int64_t>(load_le<std::uint64_t>(in));
  if (array.dtype == DType::i32) return static_cast<std::int32_t>(load_le<std::uint32_t>(in));
  return std::to_integer<std::int64_t>(*in);
}

float float_at(const Array& array, std::uint64_t i) noexcept {
  const std::byte* in = array.bytes.data() + i * bytes_of(array.dtype);
  if (array.dtype == DType::f32) return std::bit_cast<float>(load_le<std::uint32_t>(in));
  if (array.dtype == DType::f64) return static_cast<float>(std::bit_cast<double>(load_le<std::uint64_t>(in)));
  return static_cast<float>(integer_at(array, i));
}

Result<SharedBytes> samples_of(const NamedArray& named, std::uint64_t elements) {
  const Array& array = named.array;
  if (array.dtype == DType::u8 || array.dtype == DType::f32) {
    return named.owner.slice(static_cast<std::size_t>(array.bytes.data() - named.owner.bytes().data()),
                             array.bytes.size());
  }
  Result<MutableBytes> buffer = allocate(elements * sizeof(float), named.name);
  if (!buffer) return std::move(buffer).error();
  std::byte* out = buffer->bytes().data();
  for (std::uint64_t i = 0; i < elements; ++i) store_le(out + 4 * i, std::bit_cast<std::uint32_t>(float_at(array, i)));
  return std::move(*buffer).seal();
}

Status read_targets(const NamedArray& named, Parts& parts) {
  const Array& array = named.array;
  const std::uint64_t each = array.bytes.size() / bytes_of(array.dtype) / parts.size;
  if (is_floating(array.dtype)) {
    parts.target_kind = TargetKind::values;
    parts.target_elements = each;
    parts.values.resize(parts.size * each);
    for (std::uint64_t i = 0; i < parts.values.size(); ++i) parts.values[i] = float_at(array, i);
    return {};
  }
  if (each != 1) {
    return Error{ErrorCode::input,
                 named.name + ": expected one class number a sample, found shape " + to_text(array.shape) + " of " +
                     to_text(array.dtype),
                 "save class numbers as shape [N], or target values as float32"};
  }
  parts.classes.resize(parts.size);
  for (std::uint64_t i = 0; i < parts.size; ++i) parts.classes[i] = integer_at(array, i);
  const std::string complaint = complain_about_classes(parts.classes);
  if (complaint.empty()) return {};
  return Error{
      ErrorCode::input,
      named.name + ": expected class numbers from 0 to " + std::to_string(kClassesMax - 1) + ", found " + complaint,
      "number the classes from 0; save target values as float32"};
}

}  // namespace

Result<NamedArray> read_array(const Source& source) {
  Result<SharedBytes> bytes = source.read(0, source.size());
  if (!bytes) return std::move(bytes).error();
  const std::string& name = source.name();
  if (looks_like_gzip(bytes->bytes())) {
    bytes = gunzip(bytes->bytes(), name);
    if (!bytes) return std::move(bytes).error();
  }
  Result<Array> array =
      looks_like_npy(bytes->bytes()) ? parse_npy(bytes->bytes(), name) : parse_idx(bytes->bytes(), name);
  if (!array) return std::move(array).error();
  return NamedArray{name, std::move(*bytes), std::move(*array)};
}

Result<Parts> assemble(const NamedArray& samples, const NamedArray& targets) {
  for (const NamedArray* named : {&samples, &targets}) {
    if (named->array.bytes.empty() || named->array.shape.empty()) {
      return damaged(named->name, "at least one sample", "shape " + to_text(named->array.shape));
    }
  }
  Parts parts;
  parts.size = samples.array.shape[0];
  if (targets.array.shape[0] != parts.size) {
    return Error{ErrorCode::input,
                 targets.name + ": expected " + std::to_string(parts.size) + " targets, one for each sample of " +
                     samples.name + ", found " + std::to_string(targets.array.shape[0]),
                 "check that the two files belong together"};
  }
  parts.sample_dtype = samples.array.dtype == DType::u8 ? DType::u8 : DType::f32;
  if (parts.sample_dtype == DType::u8 && samples.array.shape.size() == 3) parts.sample_shape.push_back(1);
  for (std::size_t i = 1; i < samples.array.shape.size(); ++i) {
    parts.sample_shape.push_back(static_cast<std::int64_t>(samples.array.shape[i]));
  }
  if (parts.sample_shape.empty()) parts.sample_shape.push_back(1);
  Result<SharedBytes> bytes = samples_of(samples, samples.array.bytes.size() / bytes_of(samples.array.dtype));
  if (!bytes) return std::move(bytes).error();
  parts.samples = std::move(*bytes);
  if (Status status = read_targets(targets, parts); !status) return std::move(status).error();
  return parts;
}

}  // namespace motley::data
