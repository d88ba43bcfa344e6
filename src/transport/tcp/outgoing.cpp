#include "transport/tcp/outgoing.h"

#include <algorithm>

#include "base/assert.h"
#include "transport/tcp/address.h"

namespace motley::transport {

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
  if (sealer_) return write_tls();
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
  if (sealer_ && !end_sent_) {
    end_sent_ = true;
    sealer_->close();
    flush_sealed();
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
  while (!batch_.empty() && sealer_->has_room()) seal_record();
  flush_sealed();
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
  sealer_->begin(size);
  for (std::size_t left = size; left > 0;) {
    const net::const_buffer& piece = batch_.pieces().front();
    const std::size_t count = std::min(piece.size(), left);
    sealer_->add({static_cast<const std::byte*>(piece.data()), count});
    batch_.consume(count);
    left -= count;
  }
  sealer_->end();
  sealed_plain_bytes_ += size;
}

void Outgoing::flush_sealed() {
  const std::span<const std::byte> output = sealer_->output().subspan(sealed_sent_);
  socket_.async_write_some(net::buffer(output.data(), output.size()),
                           [this, keep = owner_.keep()](const NetError& error, std::size_t count) {
                             if (mode_ == Mode::stopped) return;
                             if (error) return on_write_error(error);
                             sealed_sent_ += count;
                             if (sealed_sent_ < sealer_->output().size()) return flush_sealed();
                             sealer_->clear();
                             sealed_sent_ = 0;
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
