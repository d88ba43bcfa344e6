#include "transport/tcp/frame_reader.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "wire/limits.h"

namespace motley::transport {
namespace {

std::vector<std::byte> stream_of(const std::vector<wire::Frame>& frames) {
  std::vector<std::byte> stream;
  for (const auto& frame : frames) {
    const auto header = wire::encode_header(frame.header);
    stream.insert(stream.end(), header.begin(), header.end());
    stream.insert(stream.end(), frame.body.bytes().begin(), frame.body.bytes().end());
  }
  return stream;
}

wire::Frame numbered_frame(wire::FrameType type, std::size_t size, std::uint64_t subject) {
  wire::FrameHeader header;
  header.type = type;
  header.subject = subject;
  return wire::seal(header,
                    SharedBytes::copy_of(std::vector<std::byte>(size, std::byte{static_cast<unsigned char>(subject)})));
}

class FrameReaderTest : public ::testing::Test {
 protected:
  BufferPool pool_;
  FrameReader reader_{pool_};

  Status feed(std::span<const std::byte> bytes, std::vector<wire::Frame>& out) {
    while (!bytes.empty()) {
      if (Status status = reader_.feed(bytes); !status) return status;
      if (auto frame = reader_.take()) out.push_back(std::move(*frame));
    }
    return {};
  }
};

TEST_F(FrameReaderTest, CutAnywhereTheFramesAreTheSame) {
  const std::vector<wire::Frame> sent{numbered_frame(wire::FrameType::control, 5, 1),
                                      numbered_frame(wire::FrameType::control, 0, 2),
                                      numbered_frame(wire::FrameType::gradient, 100, 3)};
  const auto stream = stream_of(sent);
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    std::vector<wire::Frame> got;
    ASSERT_TRUE(feed(std::span(stream).first(cut), got).ok());
    ASSERT_EQ(reader_.between_frames(), cut == 0 || cut == 85 || cut == 165 || cut == stream.size()) << cut;
    ASSERT_TRUE(feed(std::span(stream).subspan(cut), got).ok());
    ASSERT_EQ(got.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
      ASSERT_EQ(got[i].header, sent[i].header);
      ASSERT_EQ(got[i].body.size(), sent[i].body.size());
      ASSERT_TRUE(std::equal(got[i].body.bytes().begin(), got[i].body.bytes().end(), sent[i].body.bytes().begin()));
    }
  }
}

TEST_F(FrameReaderTest, BodiesAreReadInPlace) {
  const auto frame = numbered_frame(wire::FrameType::weights, 1000, 1);
  const auto stream = stream_of({frame});
  std::vector<wire::Frame> got;
  ASSERT_TRUE(feed(std::span(stream).first(wire::kHeaderBytes + 10), got).ok());
  ASSERT_EQ(reader_.gap().size(), 990U);
  std::memcpy(reader_.gap().data(), stream.data() + wire::kHeaderBytes + 10, 990);
  ASSERT_TRUE(reader_.filled(990).ok());
  ASSERT_TRUE(reader_.take().has_value());
  EXPECT_TRUE(reader_.gap().empty());
}

TEST_F(FrameReaderTest, LimitsComeBeforeMemory) {
  for (const auto type : {wire::FrameType::control, wire::FrameType::gradient, wire::FrameType::blob}) {
    for (const std::uint32_t length :
         {static_cast<std::uint32_t>(wire::kControlBytesMax) + 1, 0x80000000U, 0xFFFFFFFFU}) {
      FrameReader reader(pool_);
      wire::FrameHeader header;
      header.type = type;
      header.length = header.total = length;
      const auto bytes = wire::encode_header(header);
      std::span<const std::byte> rest(bytes);
      const Status status = reader.feed(rest);
      ASSERT_FALSE(status.ok());
      EXPECT_EQ(status.error().code, ErrorCode::protocol);
      EXPECT_TRUE(reader.gap().empty());
    }
  }
}

TEST_F(FrameReaderTest, DataFramesHaveTheirOwnLimit) {
  wire::FrameHeader header;
  header.type = wire::FrameType::gradient;
  header.length = header.total = static_cast<std::uint32_t>(wire::kBodyBytesMax) + 1;
  const auto bytes = wire::encode_header(header);
  std::vector<wire::Frame> got;
  EXPECT_FALSE(feed(bytes, got).ok());
}

TEST_F(FrameReaderTest, BeforeProofOnlySmallControlFrames) {
  reader_.restrict(100);
  std::vector<wire::Frame> got;
  EXPECT_TRUE(feed(stream_of({numbered_frame(wire::FrameType::control, 100, 1)}), got).ok());
  EXPECT_EQ(got.size(), 1U);
  const Status large = feed(stream_of({numbered_frame(wire::FrameType::control, 101, 1)}), got);
  ASSERT_FALSE(large.ok());
  EXPECT_EQ(large.error().code, ErrorCode::refused);

  FrameReader other(pool_);
  other.restrict(100);
  const auto stream = stream_of({numbered_frame(wire::FrameType::gradient, 10, 1)});
  std::span<const std::byte> rest(stream);
  const Status data = other.feed(rest);
  ASSERT_FALSE(data.ok());
  EXPECT_EQ(data.error().code, ErrorCode::protocol);

  FrameReader proven(pool_);
  proven.restrict(100);
  proven.lift_restriction();
  rest = stream;
  EXPECT_TRUE(proven.feed(rest).ok());
}

TEST_F(FrameReaderTest, ADamagedBodyIsRefused) {
  auto stream = stream_of({numbered_frame(wire::FrameType::control, 10, 1)});
  stream.back() ^= std::byte{1};
  std::vector<wire::Frame> got;
  const Status status = feed(stream, got);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::protocol);
  EXPECT_TRUE(got.empty());
}

}  // namespace
}  // namespace motley::transport
