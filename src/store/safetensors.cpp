#include "store/safetensors.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/little_endian.h"
#include "store/safetensors_file.h"

namespace motley::store {
namespace {

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kDataAlignment = 64;

std::uint64_t bytes_of(const TensorView& tensor) {
  std::uint64_t bytes = 0;
  for (const SharedBytes& part : tensor.parts) bytes += part.size();
  return bytes;
}

// Larger elements first: without holes this is what keeps every tensor aligned to its own element.
std::vector<const TensorView*> in_file_order(const Safetensors& content) {
  std::vector<const TensorView*> order;
  order.reserve(content.tensors.size());
  for (const std::uint64_t bytes : {8U, 4U, 2U, 1U}) {
    for (const TensorView& tensor : content.tensors) {
      if (dtype_bytes(tensor.dtype) == bytes) order.push_back(&tensor);
    }
  }
  return order;
}

Result<std::string> make_header(const Safetensors& content, const std::vector<const TensorView*>& order) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!content.metadata.empty()) header["__metadata__"] = content.metadata;
  std::set<std::string_view> names;
  std::uint64_t at = 0;
  // ordered_json looks keys up by a linear search, so tensors are dumped one by one.
  std::string text;
  try {
    text = header.dump();
    text.pop_back();
    for (const TensorView* tensor : order) {
      const std::uint64_t bytes = bytes_of(*tensor);
      std::uint64_t expected = dtype_bytes(tensor->dtype);
      for (const std::int64_t size : tensor->shape) expected *= static_cast<std::uint64_t>(size);
      MOTLEY_ASSERT(expected == bytes);
      if (tensor->name == "__metadata__" || !names.insert(tensor->name).second)
        return Error{ErrorCode::input, "safetensors: the name " + in_quotes(tensor->name) + " of a tensor is taken",
                     "rename it"};
      nlohmann::ordered_json fields;
      fields["dtype"] = dtype_word(tensor->dtype);
      fields["shape"] = tensor->shape;
      fields["data_offsets"] = {at, at + bytes};
      if (text.size() > 1) text += ',';
      text += nlohmann::ordered_json(tensor->name).dump() + ":" + fields.dump();
      at += bytes;
    }
  } catch (const nlohmann::json::exception&) {
    return Error{ErrorCode::input, "safetensors: a name or a piece of metadata is not valid UTF-8", "rename it"};
  }
  text += '}';
  text.append((kDataAlignment - (kLengthBytes + text.size()) % kDataAlignment) % kDataAlignment, ' ');
  if (text.size() > kSafetensorsHeaderBytesMax) {
    return Error{ErrorCode::input, "safetensors: the header would have " + std::to_string(text.size()) + " bytes",
                 "100 MB is the format's limit; fewer or shorter names are needed"};
  }
  return text;
}

// By way of a buffer that stays in the processor's cache, from which whole pages go to the disk.
class StagedWriter {
 public:
  StagedWriter(File& out, std::uint64_t bytes) : out_(out) {
    if (bytes >= File::kDirectWorthBytes) out_.write_past_cache();
  }
  Status add(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const std::size_t count = std::min(bytes.size(), buffer_.bytes().size() - filled_);
      std::ranges::copy(bytes.first(count), buffer_.bytes().subspan(filled_).begin());
      filled_ += count;
      bytes = bytes.subspan(count);
      if (filled_ < buffer_.bytes().size()) return {};
      if (Status done = flush(filled_); !done) return done;
    }
    return {};
  }
  /// The last page may be cut.
  Result<FileHash> finish() {
    const std::size_t cut = filled_ % File::kDirectBytes;
    if (Status done = flush(filled_ - cut); !done) return std::move(done).error();
    out_.write_by_cache();
    if (Status done = flush(cut); !done) return std::move(done).error();
    if (Status done = out_.sync(); !done) return std::move(done).error();
    return hash_;
  }

 private:
  static constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

  // The first of what is filled; the rest, less than a page, moves to the front.
  Status flush(std::size_t count) {
    const std::span<const std::byte> bytes = buffer_.bytes().first(count);
    hash_.bytes += count;
    hash_.crc32c = crc32c(bytes, hash_.crc32c);
    if (Status done = out_.write(bytes); !done) return done;
    std::ranges::copy(buffer_.bytes().subspan(count, filled_ - count), buffer_.bytes().begin());
    filled_ -= count;
    return {};
  }

  File& out_;
  MutableBytes buffer_ = BufferPool().take(kBufferBytes);
  std::size_t filled_ = 0;
  FileHash hash_;
};

}  // namespace

Result<FileHash> write_safetensors_hashed(const std::filesystem::path& file, const Safetensors& content) {
  const auto order = in_file_order(content);
  auto header = make_header(content, order);
  if (!header) return std::move(header).error();
  std::array<std::byte, kLengthBytes> length{};
  store_le<std::uint64_t>(length.data(), header->size());

  std::vector<SharedBytes> parts{SharedBytes(nullptr, length), SharedBytes(nullptr, as_bytes(*header))};
  for (const TensorView* tensor : order) parts.insert(parts.end(), tensor->parts.begin(), tensor->parts.end());
  auto out = File::open(file, File::Mode::create);
  if (!out) return std::move(out).error();
  std::uint64_t bytes = 0;
  for (const SharedBytes& part : parts) bytes += part.size();
  StagedWriter writer(*out, bytes);
  for (const SharedBytes& part : parts)
    if (Status done = writer.add(part.bytes()); !done) return std::move(done).error();
  return writer.finish();
}

Status write_safetensors(const std::filesystem::path& file, const Safetensors& content) {
  auto written = write_safetensors_hashed(file, content);
  if (!written) return std::move(written).error();
  return {};
}

Result<SafetensorsReader> SafetensorsReader::open(const std::filesystem::path& path) {
  auto file = File::open(path, File::Mode::read);
  if (!file) return std::move(file).error();
  auto size = file->size();
  if (!size) return std::move(size).error();
  const auto damaged = [&](const std::string& why) {
    return Error{ErrorCode::input, path.string() + ": " + why,
                 "the file is damaged or no safetensors file; copy or save it again"};
  };
  if (*size < kLengthBytes)
    return damaged("a safetensors file has at least 8 bytes, this has " + std::to_string(*size));
  std::array<std::byte, kLengthBytes> length_bytes{};
  if (Status done = file->read_at(0, length_bytes); !done) return std::move(done).error();
  const auto length = load_le<std::uint64_t>(length_bytes.data());
  if (length > kSafetensorsHeaderBytesMax) return damaged("its header claims " + std::to_string(length) + " bytes");
  if (length > *size - kLengthBytes) {
    return damaged("its header claims " + std::to_string(length) + " bytes, " + std::to_string(*size - kLengthBytes) +
                   " are there");
  }
  std::string text(static_cast<std::size_t>(length), '\0');
  if (Status done = file->read_at(kLengthBytes, std::as_writable_bytes(std::span(text))); !done) {
    return std::move(done).error();
  }
  auto header = parse_header(text, *size - kLengthBytes - length);
  if (!header) {
    Error error = std::move(header).error();
    error.message = path.string() + ": " + error.message;
    return error;
  }
  SafetensorsReader reader;
  reader.file_ = std::move(*file);
  reader.header_ = std::move(*header);
  reader.size_ = *size;
  reader.hash_ = {kLengthBytes + length, crc32c(as_bytes(text), crc32c(length_bytes))};
  return reader;
}

Status SafetensorsReader::read(std::span<std::byte> out) {
  MOTLEY_ASSERT(out.size() <= size_ - hash_.bytes);
  if (Status done = file_.read_at(hash_.bytes, out); !done) return done;
  hash_ = {hash_.bytes + out.size(), crc32c(out, hash_.crc32c)};
  return {};
}

Result<Safetensors> read_safetensors(const std::filesystem::path& file) {
  auto reader = SafetensorsReader::open(file);
  if (!reader) return std::move(reader).error();
  BufferPool pool(0);
  Safetensors content;
  content.metadata = reader->header().metadata;
  for (const HeaderTensor& tensor : reader->header().tensors) {
    MutableBytes buffer = pool.take(static_cast<std::size_t>(tensor.end - tensor.begin));
    if (Status done = reader->read(buffer.bytes()); !done) return std::move(done).error();
    content.tensors.push_back({tensor.name, tensor.dtype, tensor.shape, {std::move(buffer).seal()}});
  }
  return content;
}

}  // namespace motley::store
