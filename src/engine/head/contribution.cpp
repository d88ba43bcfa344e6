#include "engine/head/contribution.h"

#include "codec/codec.h"

namespace motley::engine {
namespace {

std::string bytes_text(std::uint64_t first, std::uint64_t count) {
  return "bytes " + std::to_string(first) + " + " + std::to_string(count);
}

}  // namespace

std::optional<Expectation> contribution_fault(const wire::FrameHeader& header, std::size_t body, const Layout& layout,
                                              std::optional<wire::CodecId> large_codec) {
  const auto chunks = layout.chunks();
  if (header.chunk >= chunks.size()) {
    return Expectation{"a chunk below " + std::to_string(chunks.size()), "chunk " + std::to_string(header.chunk)};
  }
  const Chunk& chunk = chunks[header.chunk];
  const bool statistic = header.type == wire::FrameType::statistic;
  if (statistic != (chunk.kind == ChunkKind::statistics)) {
    return Expectation{statistic ? "gradients" : "statistics", std::string(statistic ? "statistics" : "gradients") +
                                                                   " in chunk " + std::to_string(header.chunk)};
  }
  const bool exact = header.codec == wire::CodecId::fp32;
  const wire::CodecId given = large_codec.value_or(header.codec);
  const bool lossy = chunk.kind == ChunkKind::large && given != wire::CodecId::fp32 &&
                     (header.codec == given || header.codec == wire::CodecId::bf16);
  if (!exact && !lossy) {
    const bool large = chunk.kind == ChunkKind::large;
    const wire::CodecId wanted = large ? given : wire::CodecId::fp32;
    return Expectation{
        (large ? "a chunk in " : "a chunk of small tensors or statistics in ") + std::string(codec::to_word(wanted)),
        "one in " + std::string(codec::to_word(header.codec))};
  }
  const std::uint64_t total = codec::encoded_bytes(header.codec, chunk.elements);
  if (header.total != total) {
    return Expectation{std::to_string(total) + " bytes in chunk " + std::to_string(header.chunk),
                       std::to_string(header.total)};
  }
  const bool whole_floats = !exact || (header.offset % sizeof(float) == 0 && header.length % sizeof(float) == 0);
  const bool inside = std::uint64_t{header.offset} + header.length <= total;
  if (header.length == 0 || header.length != body || !whole_floats || !inside) {
    return Expectation{"a segment of whole floats inside " + std::to_string(total) + " bytes",
                       bytes_text(header.offset, header.length) + " with a body of " + std::to_string(body)};
  }
  return std::nullopt;
}

}  // namespace motley::engine
