// Writing: from the queues to the socket.

#include <algorithm>

#include "base/assert.h"
#include "transport/tcp/address.h"
#include "transport/tcp/core.h"

namespace motley::transport {

void Core::send(wire::Frame frame, Priority priority) {
  MOTLEY_ASSERT(frame.header.length == frame.body.size());
  const std::size_t bytes = wire::kHeaderBytes + frame.body.size();
  {
    const std::lock_guard lock(mutex_);
    if (no_more_sends_) return;
    queued_bytes_ += bytes;
    queue_.push(std::move(frame), priority);
    if (writing_) return;
    writing_ = true;
  }
  net::post(socket_.get_executor(), [self = shared_from_this()] { self->write(); });
}

/// REQUIRES writing_. Goes on until the queue is empty.
void Core::write() {
  if (state_ == State::closed || state_ == State::draining || write_failed_) return;
  if (batch_.empty() && !refill()) return;
  if (tls_ != nullptr) return write_tls();
  write_plain();
}

/// False when there is nothing to write: the writer is idle then, or the connection moves on to its end.
bool Core::refill() {
  batch_.clear();
  {
    const std::lock_guard lock(mutex_);
    while (!queue_.empty() && !batch_.full()) batch_.add(queue_.pop());
    if (!batch_.empty()) return true;
    if (state_ != State::flushing) {
      writing_ = false;
      return false;
    }
  }
  if (tls_ != nullptr && !end_sent_) {
    end_sent_ = true;
    tls_->shut_down();
    flush_output();
    return false;
  }
  finish_sending();
  return false;
}

// One call of async_write_some a turn, not async_write: Asio's composed writes cut every call at 64 KiB, which halves
// the throughput of large frames.
void Core::write_plain() {
  socket_.async_write_some(batch_.pieces(), [self = shared_from_this()](const NetError& error, std::size_t count) {
    if (self->state_ == State::closed) return;
    if (error) return self->on_write_error(error);
    self->batch_.consume(count);
    self->on_written(count);
    self->write();
  });
}

void Core::write_tls() {
  if (!encrypt()) return fail(network_error(tls_->failure()));
  flush_output();
}

/// Moves at most kCipherBytes of the batch into the TLS output; small pieces share a record.
bool Core::encrypt() {
  std::size_t taken = 0;
  while (!batch_.empty() && taken < kCipherBytes) {
    const net::const_buffer piece = batch_.pieces().front();
    const auto* data = static_cast<const std::byte*>(piece.data());
    std::size_t count = 0;
    if (record_.empty() && piece.size() >= kRecordBytes) {
      count = std::min(piece.size() / kRecordBytes * kRecordBytes, kCipherBytes);
      if (!tls_->write({data, count})) return false;
    } else {
      count = std::min(piece.size(), kRecordBytes - record_.size());
      record_.insert(record_.end(), data, data + count);
      if (record_.size() == kRecordBytes) {
        if (!tls_->write(record_)) return false;
        record_.clear();
      }
    }
    batch_.consume(count);
    taken += count;
  }
  output_plain_bytes_ += taken;
  if (record_.empty()) return true;
  const bool ok = tls_->write(record_);
  record_.clear();
  return ok;
}

void Core::flush_output() {
  std::vector<std::byte>& output = tls_->output();
  socket_.async_write_some(net::buffer(output.data() + output_sent_, output.size() - output_sent_),
                           [self = shared_from_this()](const NetError& error, std::size_t count) {
                             if (self->state_ == State::closed) return;
                             if (error) return self->on_write_error(error);
                             self->output_sent_ += count;
                             if (self->output_sent_ < self->tls_->output().size()) return self->flush_output();
                             self->tls_->output().clear();
                             self->output_sent_ = 0;
                             self->on_written(std::exchange(self->output_plain_bytes_, 0));
                             self->write();
                           });
}

void Core::on_written(std::size_t plain_bytes) {
  sent_bytes_ += plain_bytes;
  queued_bytes_ -= plain_bytes;
}

/// The other side may have said why before it left: read on to the end, which is near.
void Core::on_write_error(const NetError& error) {
  write_failed_ = true;
  batch_.clear();
  {
    const std::lock_guard lock(mutex_);
    no_more_sends_ = true;
    queue_.clear();
    queued_bytes_ = 0;
  }
  if (state_ != State::open) return fail(network_error("closed by this side"));
  if (!reading_) return fail(network_error(reason_of(error)));
  arm(kCloseTime, "the other side takes no more");
}

}  // namespace motley::transport
