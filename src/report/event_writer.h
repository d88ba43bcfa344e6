#pragma once
// Writes events as text, and says in their place how many were dropped. For one sink, by its thread.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "report/event.h"
#include "report/writer.h"

namespace motley::report {

class EventWriter {
 public:
  /// `gap`: the text that stands for so many events.
  EventWriter(std::shared_ptr<Writer> writer, std::function<std::string(std::uint64_t dropped)> gap)
      : writer_(std::move(writer)), gap_(std::move(gap)) {}
  ~EventWriter();
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  /// What `event` is in words: whole lines.
  void write(const Event& event, std::string lines);

 private:
  std::shared_ptr<Writer> writer_;
  std::function<std::string(std::uint64_t)> gap_;
  std::uint64_t dropped_ = 0;  // since the last one that was written
};

}  // namespace motley::report
