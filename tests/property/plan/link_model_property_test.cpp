// What is measured of a message, held against a link that carries one byte after the other.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "plan/link_model.h"

namespace motley::plan {
namespace {

struct Message {
  std::vector<Departure> departures;
  std::uint64_t bytes = 0;
  double arrived = 0;
};

Message any_message(double bytes_per_second, double delay) {
  Message message;
  double at = *rc::gen::inRange(0, 1000) * 1e-2;
  const auto chunks = *rc::gen::inRange(1, 20);
  for (int i = 0; i < chunks; ++i) {
    at += *rc::gen::inRange(0, 3) * *rc::gen::inRange(0, 100) * 1e-3;
    const auto bytes = *rc::gen::inRange<std::uint64_t>(1, 1'000'000);
    message.departures.push_back({bytes, at});
    message.bytes += bytes;
    message.arrived = std::max(message.arrived, at) + static_cast<double>(bytes) / bytes_per_second;
  }
  message.arrived += delay;
  return message;
}

RC_GTEST_PROP(BusyPartProperty, IsNeverFasterThanTheLink, ()) {
  const double speed = *rc::gen::inRange(1, 1000) * 1e5;
  const Message message = any_message(speed, *rc::gen::inRange(0, 100) * 1e-3);
  const Transfer part = busy_part(message.departures, message.arrived);
  RC_ASSERT(part.bytes <= message.bytes);
  RC_ASSERT(part.bytes == 0 || 2 * part.bytes >= message.bytes);
  RC_ASSERT(static_cast<double>(part.bytes) <= speed * part.seconds * (1 + 1e-9));
}

RC_GTEST_PROP(BusyPartProperty, IsAsFastAsTheLinkWithoutDelays, ()) {
  const double speed = *rc::gen::inRange(1, 1000) * 1e5;
  const Message message = any_message(speed, 0);
  const Transfer part = busy_part(message.departures, message.arrived);
  if (part.bytes > 0) RC_ASSERT(static_cast<double>(part.bytes) >= speed * part.seconds * (1 - 1e-9));
  const bool at_once = message.departures.back().at == message.departures.front().at;
  if (at_once) RC_ASSERT(2 * part.bytes >= message.bytes);
}

}  // namespace
}  // namespace motley::plan
