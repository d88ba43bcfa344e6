#include "transport/tcp/send_queue.h"

#include <algorithm>

#include "base/assert.h"

namespace motley::transport {

void SendQueue::Line::push(wire::Frame frame) {
  if (frames_.size() == frames_.capacity() && first_ > frames_.size() / 2) {
    frames_.erase(frames_.begin(), frames_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }
  frames_.push_back(std::move(frame));
}

wire::Frame SendQueue::Line::pop() {
  MOTLEY_ASSERT(!empty());
  wire::Frame frame = std::move(frames_[first_++]);
  if (empty()) clear();
  return frame;
}

void SendQueue::Line::clear() {
  frames_.clear();
  first_ = 0;
}

void SendQueue::push(wire::Frame frame, Priority priority) {
  lines_[static_cast<std::size_t>(priority)].push(std::move(frame));
  ++count_;
}

wire::Frame SendQueue::pop() {
  MOTLEY_ASSERT(count_ > 0);
  --count_;
  const auto line = std::find_if(lines_.begin(), lines_.end(), [](const Line& each) { return !each.empty(); });
  MOTLEY_ASSERT(line != lines_.end());
  return line->pop();
}

void SendQueue::clear() {
  for (Line& line : lines_) line.clear();
  count_ = 0;
}

Batch::Batch() {
  frames_.reserve(kFramesMax);
  headers_.reserve(kFramesMax);  // never grows: pieces_ points into it
  pieces_.reserve(2 * kFramesMax);
}

void Batch::add(wire::Frame frame) {
  MOTLEY_ASSERT(!full());
  const auto& header = headers_.emplace_back(wire::encode_header(frame.header));
  pieces_.emplace_back(header.data(), header.size());
  const std::span<const std::byte> body = frame.body.bytes();
  if (!body.empty()) pieces_.emplace_back(body.data(), body.size());
  bytes_ += header.size() + body.size();
  frames_.push_back(std::move(frame));
}

std::span<const net::const_buffer> Batch::pieces() const noexcept { return std::span(pieces_).subspan(first_); }

void Batch::consume(std::size_t count) {
  while (count > 0) {
    MOTLEY_ASSERT(first_ < pieces_.size());
    net::const_buffer& piece = pieces_[first_];
    const std::size_t step = std::min(count, piece.size());
    piece += step;
    count -= step;
    if (piece.size() == 0) ++first_;
  }
}

void Batch::clear() {
  frames_.clear();
  headers_.clear();
  pieces_.clear();
  first_ = 0;
  bytes_ = 0;
}

}  // namespace motley::transport
