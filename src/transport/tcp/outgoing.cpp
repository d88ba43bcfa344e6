#include "transport/tcp/outgoing.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "base/assert.h"
#include "transport/tcp/address.h"

namespace motley::transport {

void Outgoing::encrypt(TlsSession& tls) {
  MOTLEY_ASSERT(tls_ == nullptr && tls.output().empty());
  tls_ = &tls;
  joined_.resize(kRecordBytes);
  constexpr std::size_t kRoom = kSealedBytes + kRecordBytes + (std::size_t{1} << 10);  // and for headers and tags
  sealed_.reserve(kRoom);
  tls.output().reserve(kRoom);
}

void Outgoing::send(wire::Frame frame, Priority priority) {
  MOTLEY_ASSERT(frame.header.length == frame.body.size());
  const std::size_t bytes = wire::kHeaderBytes + frame.body.size();
  {
    const std::lock_guard lock(mutex_);
    if (no_more_) return;
    queued_bytes_ += bytes;
    queue_.push(std::move(frame), priority);
    if (writing_) return;
    writing_ = true;
  }
  net::post(socket_.get_executor(), [this, keep = owner_.keep()] { write(); });
}

void Outgoing::take_no_more() {
  const std::lock_guard lock(mutex_);
  no_more_ = true;
}

void Outgoing::finish() {
  mode_ = mode_ == Mode::open ? Mode::finishing : mode_;
  bool idle = false;
  {
    const std::lock_guard lock(mutex_);
    idle = !writing_;
    writing_ = true;
  }
  if (idle) write();
}

void Outgoing::stop() {
  mode_ = Mode::stopped;
  drop_queue();
}

void Outgoing::drop_queue() {
  const std::lock_guard lock(mutex_);
  no_more_ = true;
  queue_.clear();
  queued_bytes_ = 0;
}

/// REQUIRES writing_. Goes on until the queue is empty.
void Outgoing::write() {
  if (mode_ != Mode::open && mode_ != Mode::finishing) return;
  if (batch_.empty() && !refill()) return;
  if (tls_ != nullptr) return write_tls();
  write_plain();
}

/// False when there is nothing to write: the writer is idle then, or the connection moves on to its end.
bool Outgoing::refill() {
  batch_.clear();
  {
    const std::lock_guard lock(mutex_);
    while (!queue_.empty() && !batch_.full()) batch_.add(queue_.pop());
    if (!batch_.empty()) return true;
    if (mode_ != Mode::finishing) {
      writing_ = false;
      return false;
    }
  }
  if (tls_ != nullptr && !end_sent_) {
    end_sent_ = true;
    tls_->seal_end();
    send_sealed();
    return false;
  }
  mode_ = Mode::finished;
  owner_.on_all_sent();
  return false;
}

// One call of async_write_some a turn, not async_write: Asio's composed writes cut every call at 64 KiB, which halves
// the throughput of large frames.
void Outgoing::write_plain() {
  socket_.async_write_some(batch_.pieces(), [this, keep = owner_.keep()](const NetError& error, std::size_t count) {
    if (mode_ == Mode::stopped) return;
    if (error) return on_write_error(error);
    batch_.consume(count);
    on_written(count);
    write();
  });
}

void Outgoing::write_tls() {
  while (!batch_.empty() && tls_->output().size() < kSealedBytes) seal_record();
  send_sealed();
}

// Small pieces share a record. A piece that fills records of its own begins one: so the other side decrypts it straight
// into the memory it is for.
void Outgoing::seal_record() {
  std::size_t size = 0;
  for (const net::const_buffer& piece : batch_.pieces()) {
    if (size > 0 && piece.size() >= kRecordBytes) break;
    size += std::min(piece.size(), kRecordBytes - size);
    if (size == kRecordBytes) break;
  }
  const net::const_buffer& first = batch_.pieces().front();
  if (first.size() >= size) {
    tls_->seal({static_cast<const std::byte*>(first.data()), size});
    batch_.consume(size);
  } else {
    for (std::size_t at = 0; at < size;) {
      const net::const_buffer& piece = batch_.pieces().front();
      const std::size_t count = std::min(piece.size(), size - at);
      std::memcpy(joined_.data() + at, piece.data(), count);
      batch_.consume(count);
      at += count;
    }
    tls_->seal(std::span(joined_).first(size));
  }
  sealed_plain_bytes_ += size;
}

/// While these are on their way OpenSSL may have something to say: it writes behind them.
void Outgoing::send_sealed() {
  std::swap(sealed_, tls_->output());
  tls_->output().clear();
  sealed_sent_ = 0;
  flush_sealed();
}

void Outgoing::flush_sealed() {
  const std::span<const std::byte> left = std::span(sealed_).subspan(sealed_sent_);
  socket_.async_write_some(net::buffer(left.data(), left.size()),
                           [this, keep = owner_.keep()](const NetError& error, std::size_t count) {
                             if (mode_ == Mode::stopped) return;
                             if (error) return on_write_error(error);
                             sealed_sent_ += count;
                             if (sealed_sent_ < sealed_.size()) return flush_sealed();
                             sealed_.clear();
                             on_written(std::exchange(sealed_plain_bytes_, 0));
                             write();
                           });
}

void Outgoing::on_written(std::size_t plain_bytes) {
  bytes_ += plain_bytes;
  queued_bytes_ -= plain_bytes;
}

void Outgoing::on_write_error(const NetError& error) {
  mode_ = Mode::not_taken;
  batch_.clear();
  drop_queue();
  owner_.on_not_taken(reason_of(error));
}

}  // namespace motley::transport
