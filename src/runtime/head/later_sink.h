#pragma once
// A sink that lets the coordinator go on: what it is told is handed on when the mailbox has done what it is at. Between
// a step's last contribution and the next grants nobody then waits for texts to be made. One thread: the mailbox's.

#include <deque>
#include <memory>
#include <utility>

#include "report/sink.h"
#include "runtime/mailbox.h"

namespace motley::runtime {

class LaterSink final : public report::Sink {
 public:
  /// REQUIRES `sink` outlives the mailbox's thread.
  LaterSink(report::Sink& sink, std::shared_ptr<Mailbox> mailbox) : sink_(sink), mailbox_(std::move(mailbox)) {}

  /// In order. Once somebody has stopped the mailbox, what is told is dropped.
  void take(const report::Event& event) override {
    waiting_.push_back(event);
    if (waiting_.size() == 1) mailbox_->post([this] { flush(); });
  }
  /// At once. What is told meanwhile comes behind.
  void flush() {
    while (!waiting_.empty()) {
      const report::Event event = std::move(waiting_.front());
      waiting_.pop_front();
      sink_.take(event);
    }
  }

 private:
  report::Sink& sink_;
  const std::shared_ptr<Mailbox> mailbox_;
  std::deque<report::Event> waiting_;
};

}  // namespace motley::runtime
