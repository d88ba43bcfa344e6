#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

#include "wire/frame.h"
#include "wire/limits.h"

namespace motley::wire {
namespace {

FrameHeader any_header() {
  FrameHeader header;
  header.type = *rc::gen::element(FrameType::control, FrameType::weights, FrameType::gradient, FrameType::statistic,
                                  FrameType::ack, FrameType::block, FrameType::blob);
  header.flags = *rc::gen::arbitrary<std::uint16_t>();
  header.run = *rc::gen::arbitrary<std::uint64_t>();
  header.fence = *rc::gen::arbitrary<std::uint64_t>();
  header.pass = *rc::gen::arbitrary<std::uint64_t>();
  header.subject = *rc::gen::arbitrary<std::uint64_t>();
  header.version = *rc::gen::arbitrary<std::uint64_t>();
  header.chunk = *rc::gen::arbitrary<std::uint32_t>();
  header.shard = *rc::gen::arbitrary<std::uint8_t>();
  return header;
}

RC_GTEST_PROP(Frame, HeaderComesBack, (std::vector<std::uint8_t> body, std::uint16_t before, std::uint16_t behind)) {
  FrameHeader header = any_header();
  if (is_segmented(header.type)) {
    header.offset = before;
    header.total = static_cast<std::uint32_t>(before + body.size() + behind);
  }
  const Frame frame = seal(header, SharedBytes::copy_of(std::as_bytes(std::span(body))));
  const auto read = decode_header(encode_header(frame.header), kControlBytesMax);
  RC_ASSERT(read.ok());
  RC_ASSERT(*read == frame.header);
  RC_ASSERT(verify_body(*read, frame.body.bytes()).ok());
}

RC_GTEST_PROP(Frame, ThreeWrongBytesAreFound, (std::uint8_t a, std::uint8_t b, std::uint8_t c)) {
  const auto good = encode_header(seal(any_header(), {}).header);
  auto bad = good;
  for (const std::uint8_t place : {a, b, c})
    bad[place % kHeaderBytes] = static_cast<std::byte>(*rc::gen::arbitrary<std::uint8_t>());
  if (bad != good) RC_ASSERT(!decode_header(bad, kControlBytesMax).ok());
}

}  // namespace
}  // namespace motley::wire
