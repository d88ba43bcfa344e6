#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "store/safetensors_file.h"

namespace motley::store {
namespace {

constexpr std::size_t kDimensionsMax = 64;

struct DTypeWord {
  std::string_view word;
  DType dtype;
  std::uint64_t bytes;
};
constexpr std::array<DTypeWord, 8> kDTypes{{{"F32", DType::f32, 4},
                                            {"F16", DType::f16, 2},
                                            {"BF16", DType::bf16, 2},
                                            {"F64", DType::f64, 8},
                                            {"I64", DType::i64, 8},
                                            {"I32", DType::i32, 4},
                                            {"U8", DType::u8, 1},
                                            {"BOOL", DType::boolean, 1}}};

Error damaged(std::string message) {
  return {ErrorCode::input, "safetensors header: " + std::move(message),
          "the file is damaged or no safetensors file; copy or save it again"};
}

// Takes the header event by event, so that nothing hostile (depth, duplicates, huge arrays) is ever built in memory.
// The grammar has three levels: the tensors, a tensor's fields or the metadata, a shape or a pair of offsets.
class HeaderHandler final : public nlohmann::json_sax<nlohmann::json> {
 public:
  SafetensorsHeader header;
  std::string problem;

  bool null() override { return fail("null where " + expected()); }
  bool boolean(bool /*value*/) override { return fail("true or false where " + expected()); }
  bool number_integer(number_integer_t value) override {
    if (value >= 0) return number_unsigned(static_cast<number_unsigned_t>(value));
    return fail("a negative number where " + expected());
  }
  bool number_float(number_float_t /*value*/, const string_t& text) override {
    return fail("the number " + in_quotes(text) + " where " + expected());
  }
  bool binary(binary_t& /*value*/) override { return fail("binary data where " + expected()); }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& why) override {
    return fail("no JSON at byte " + std::to_string(position) + ": " + in_quotes(why.what()));
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ == Place::shape) {
      if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        return fail("a size above 2^63");
      if (tensor_.shape.size() >= kDimensionsMax) return fail("more than 64 dimensions");
      tensor_.shape.push_back(static_cast<std::int64_t>(value));
      return true;
    }
    if (place_ == Place::offsets) {
      if (offsets_ >= 2) return fail("more than two data_offsets");
      (offsets_++ == 0 ? tensor_.begin : tensor_.end) = value;
      return true;
    }
    return fail("a number where " + expected());
  }

  bool string(string_t& value) override {
    if (place_ == Place::metadata) {
      if (!header.metadata.emplace(std::move(key_), std::move(value)).second)
        return fail("a key of __metadata__ twice");
      return true;
    }
    if (place_ == Place::tensor && key_ == "dtype") {
      DType dtype{};
      if (!parse_dtype(value, dtype)) {
        return fail("dtype " + in_quotes(value) + "; supported are F32, F16, BF16, F64, I64, I32, U8 and BOOL");
      }
      tensor_.dtype = dtype;
      return true;
    }
    return fail("the text " + in_quotes(value) + " where " + expected());
  }

  bool start_object(std::size_t /*elements*/) override {
    if (place_ == Place::start) {
      place_ = Place::tensors;
    } else if (place_ == Place::tensors && key_ == "__metadata__") {
      if (std::exchange(metadata_seen_, true)) return fail("__metadata__ twice");
      place_ = Place::metadata;
    } else if (place_ == Place::tensors) {
      if (!names_.insert(key_).second) return fail("two tensors of the same name");
      tensor_ = {};
      tensor_.name = key_;
      seen_ = {};
      offsets_ = 0;
      place_ = Place::tensor;
    } else {
      return fail("an object where " + expected());
    }
    return true;
  }

  bool end_object() override {
    if (place_ == Place::tensor) {
      if (!seen_[0] || !seen_[1] || !seen_[2]) return fail("one of dtype, shape, data_offsets is missing");
      header.tensors.push_back(std::move(tensor_));
      tensor_ = {};
    }
    place_ = place_ == Place::tensors ? Place::done : Place::tensors;
    return true;
  }

  bool start_array(std::size_t /*elements*/) override {
    if (place_ == Place::tensor && key_ == "shape") {
      place_ = Place::shape;
    } else if (place_ == Place::tensor && key_ == "data_offsets") {
      place_ = Place::offsets;
    } else {
      return fail("an array where " + expected());
    }
    return true;
  }

  bool end_array() override {
    if (place_ == Place::offsets && offsets_ != 2) return fail("data_offsets needs two numbers");
    place_ = Place::tensor;
    return true;
  }

  bool key(string_t& value) override {
    if (place_ == Place::tensor) {
      const std::array<std::string_view, 3> fields{"dtype", "shape", "data_offsets"};
      const auto* const field = std::find(fields.begin(), fields.end(), value);
      if (field == fields.end()) return fail("the unknown field " + in_quotes(value));
      if (std::exchange(seen_[static_cast<std::size_t>(field - fields.begin())], true)) {
        return fail("the field " + in_quotes(value) + " twice");
      }
    }
    key_ = std::move(value);
    return true;
  }

 private:
  enum class Place : std::uint8_t { start, tensors, metadata, tensor, shape, offsets, done };

  std::string expected() const {
    switch (place_) {
      case Place::start:
        return "an object was expected";
      case Place::tensors:
        return "the object of " + in_quotes(key_) + " was expected";
      case Place::metadata:
        return "the text of " + in_quotes(key_) + " in __metadata__ was expected";
      case Place::tensor:
        return "the value of " + in_quotes(key_) + " was expected";
      case Place::shape:
      case Place::offsets:
        return "a size was expected";
      case Place::done:
        return "the end was expected";
    }
    return {};
  }
  bool fail(std::string why) {
    problem = std::move(why);
    if (place_ >= Place::tensor && place_ <= Place::offsets) problem += " (tensor " + in_quotes(tensor_.name) + ")";
    return false;
  }

  Place place_ = Place::start;
  std::string key_;
  std::set<std::string> names_;
  bool metadata_seen_ = false;
  HeaderTensor tensor_;
  std::array<bool, 3> seen_{};
  unsigned offsets_ = 0;
};

// shape x dtype in bytes; nothing when that is beyond 64 bits.
std::optional<std::uint64_t> bytes_of(const HeaderTensor& tensor) {
  std::uint64_t bytes = dtype_bytes(tensor.dtype);
  if (std::find(tensor.shape.begin(), tensor.shape.end(), 0) != tensor.shape.end()) return 0;
  for (const std::int64_t size : tensor.shape) {
    const auto factor = static_cast<std::uint64_t>(size);
    if (bytes > std::numeric_limits<std::uint64_t>::max() / factor) return std::nullopt;
    bytes *= factor;
  }
  return bytes;
}

std::optional<Error> check_offsets(SafetensorsHeader& header, std::uint64_t data_bytes) {
  std::sort(header.tensors.begin(), header.tensors.end(), [](const HeaderTensor& a, const HeaderTensor& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  std::uint64_t at = 0;
  for (const HeaderTensor& tensor : header.tensors) {
    const std::string where = "tensor " + in_quotes(tensor.name) + " at [" + std::to_string(tensor.begin) + ", " +
                              std::to_string(tensor.end) + ")";
    if (tensor.end < tensor.begin) return damaged(where + " ends before it begins");
    if (tensor.end > data_bytes)
      return damaged(where + " ends past the " + std::to_string(data_bytes) + " bytes of data");
    const auto bytes = bytes_of(tensor);
    if (!bytes || *bytes != tensor.end - tensor.begin) {
      return damaged(where + " does not hold what its shape and dtype take: " +
                     (bytes ? std::to_string(*bytes) : std::string("more than 2^64")) + " bytes");
    }
    if (tensor.begin < at)
      return damaged(where + " overlaps the tensor before it, which ends at " + std::to_string(at));
    if (tensor.begin > at) return damaged(where + " leaves a hole from " + std::to_string(at));
    at = tensor.end;
  }
  if (at != data_bytes) {
    return damaged("the tensors end at byte " + std::to_string(at) + ", the data at " + std::to_string(data_bytes));
  }
  return std::nullopt;
}

}  // namespace

std::uint64_t dtype_bytes(DType dtype) noexcept {
  for (const DTypeWord& known : kDTypes) {
    if (known.dtype == dtype) return known.bytes;
  }
  return 0;
}

std::string_view dtype_word(DType dtype) noexcept {
  for (const DTypeWord& known : kDTypes) {
    if (known.dtype == dtype) return known.word;
  }
  return {};
}

bool parse_dtype(std::string_view word, DType& dtype) noexcept {
  for (const DTypeWord& known : kDTypes) {
    if (known.word != word) continue;
    dtype = known.dtype;
    return true;
  }
  return false;
}

Result<SafetensorsHeader> parse_header(std::string_view json, std::uint64_t data_bytes) {
  if (json.size() > kSafetensorsHeaderBytesMax) return damaged("longer than 100 MB");
  if (!json.starts_with('{')) return damaged("it does not begin with {");
  HeaderHandler handler;
  if (!nlohmann::json::sax_parse(json.begin(), json.end(), &handler)) return damaged(handler.problem);
  if (auto problem = check_offsets(handler.header, data_bytes)) return std::move(*problem);
  return std::move(handler.header);
}

Result<Safetensors> parse_safetensors_header(std::string_view json, std::uint64_t data_bytes) {
  auto header = parse_header(json, data_bytes);
  if (!header) return std::move(header).error();
  Safetensors content;
  content.metadata = std::move(header->metadata);
  content.tensors.reserve(header->tensors.size());
  for (HeaderTensor& tensor : header->tensors) {
    content.tensors.push_back({std::move(tensor.name), tensor.dtype, std::move(tensor.shape), {}});
  }
  return content;
}

}  // namespace motley::store
